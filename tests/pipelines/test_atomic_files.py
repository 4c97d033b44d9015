import os
import stat
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from pipelines import atomic_files
from pipelines.atomic_files import (
    copy_folder,
    left_over,
    partial_path,
    read_json,
    read_model,
    remove,
    remove_below,
    write,
    write_json,
)
from pipelines.errors import BadInputError


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch, failing):
    file = tmp_path / "a" / "b.json"
    write_json(file, {"x": 1})
    assert read_json(file) == {"x": 1}

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (type(file), "replace")), fail)
    with pytest.raises(OSError, match="disk full"):
        write_json(file, {"x": 2})
    assert read_json(file) == {"x": 1}


def test_text_is_written_as_utf_8_and_bytes_as_they_are(tmp_path):
    write(tmp_path / "a", "größe\n")
    write(tmp_path / "b", b"\xff\x00")
    assert (tmp_path / "a").read_bytes() == "größe\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\xff\x00"


def test_a_private_file_is_readable_by_its_owner_alone(tmp_path):
    file = tmp_path / "token"
    write(file, "old")
    write(file, "new", private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.fixture(params=[0o022, 0o002])
def umask(request):
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def test_a_copy_has_the_permissions_of_new_files(tmp_path, umask):
    source = tmp_path / "source"
    (source / "variables").mkdir(parents=True)
    (source / "variables" / "weights").write_text("1")
    for path in (source, source / "variables", source / "variables" / "weights"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    copy_folder(source, tmp_path / "kept")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "kept").rglob("*")}
    assert modes == {"variables": 0o777 & ~umask, "weights": 0o666 & ~umask}


def test_a_copy_appears_when_it_is_complete(tmp_path):
    source, target = tmp_path / "source", tmp_path / "kept" / "model"
    source.mkdir()
    (source / "weights").write_text("7")
    (source / "broken").symlink_to("nowhere")
    with pytest.raises(OSError, match=r"nowhere|broken"):
        copy_folder(source, target)
    assert not target.exists()
    (source / "broken").unlink()
    copy_folder(source, target)
    assert (target / "weights").read_text() == "7"
    assert not (target / "broken").exists()


def test_processes_of_two_pods_write_to_different_partial_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as in most containers
    paths = set()
    for pod in ("serve-1", "serve-2"):
        monkeypatch.setattr(os, "uname", lambda pod=pod: types.SimpleNamespace(nodename=pod))
        paths.add(partial_path(tmp_path / "trips.csv"))
    assert len(paths) == 2
    assert {path.parent for path in paths} == {tmp_path}


def test_only_partial_files_of_processes_that_are_gone_are_left_over(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    node = os.uname().nodename
    for name in (
        f".gone.json.{node}-{ended.pid}.partial",
        f".mine.json.{node}-{os.getpid()}.partial",
        ".new.json.elsewhere-7.partial",
        ".old.json.elsewhere-7.partial",
        "whole.json",
    ):
        (tmp_path / name).write_text("")
    long_ago = time.time() - 2 * 86_400
    os.utime(tmp_path / ".old.json.elsewhere-7.partial", (long_ago, long_ago))
    found = {path.name.split(".")[1] for path in left_over(tmp_path)}
    assert found == {"gone", "old"}


def test_the_message_names_a_damaged_file(tmp_path):
    file = tmp_path / "b.json"
    with pytest.raises(FileNotFoundError):
        read_json(file)
    for text in ("{", "[]"):
        file.write_text(text)
        with pytest.raises(BadInputError, match=r"b\.json.*Correct it, or remove it"):
            read_json(file)
    file.write_text('{"a": {"b": "7", "c": "x"}}')
    assert read_json(file) == {"a": {"b": "7", "c": "x"}}
    assert read_model(file, dict[str, dict[str, str]]) == {"a": {"b": "7", "c": "x"}}
    with pytest.raises(BadInputError, match=r"b\.json cannot be read: a\.c: .* valid integer"):
        read_model(file, dict[str, dict[str, int]])
    remove(file)
    remove(file)
    assert not file.exists()


@pytest.mark.parametrize("path", ["../outside", "in/../../outside", "link/file", ".", "in/.."])
def test_nothing_outside_of_a_folder_is_removed(tmp_path, path):
    for name in ("folder/in/file", "outside/file"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "outside")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadInputError, match="outside of"):
        remove_below(tmp_path / "folder", tmp_path / "folder" / path)
    assert sorted(tmp_path.rglob("*")) == before
    for inside in ("in/../in/file", "link", "in"):
        remove_below(tmp_path / "folder", tmp_path / "folder" / inside)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "outside"]


def test_a_small_file_may_be_a_pipe_but_never_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "MAX_SMALL_BYTES", 4)
    (tmp_path / "small").write_bytes(b"1234")
    assert atomic_files.read_small(tmp_path / "small", "a token") == b"1234"
    reader, writer = os.pipe()
    os.write(writer, b"12")
    os.close(writer)
    assert atomic_files.read_small(Path(f"/dev/fd/{reader}"), "a token") == b"12"
    os.close(reader)
    with pytest.raises(BadInputError, match=r"/dev/zero holds more than .* too much for a token"):
        atomic_files.read_small(Path("/dev/zero"), "a token")
