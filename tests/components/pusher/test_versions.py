import os
from pathlib import Path

import pytest
import tensorflow as tf
from tfx.utils import io_utils

from components.interruption import RunInterruptedError, interruption
from components.pusher import versions
from components.pusher.listing import misleading_names
from tests.pushed_versions import add_model


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    (directory / "variables").mkdir(parents=True)
    (directory / "saved_model.pb").write_text("graph")
    (directory / "variables" / "variables.index").write_text("index")
    return str(directory)


@pytest.fixture
def base(tmp_path):
    return str(tmp_path / "serving")


def test_the_version_is_the_time_and_holds_the_whole_model(model, base):
    assert versions.push_version(model, base, now_secs=1000.9) == 1000
    pushed = Path(base) / "1000"
    assert (pushed / "saved_model.pb").read_text() == "graph"
    assert (pushed / "variables" / "variables.index").read_text() == "index"
    assert os.listdir(base) == ["1000"]


@pytest.mark.parametrize("umask", [0o002, 0o027])
def test_a_version_has_the_permissions_that_the_umask_gives(model, base, umask):
    warmup = os.path.join(model, "requests")
    Path(warmup).write_text("warm")
    former = os.umask(umask)
    try:
        versions.push_version(model, base, now_secs=7, warmup=warmup)
    finally:
        os.umask(former)
    folders = [path for path in (Path(base), *Path(base).rglob("*")) if path.is_dir()]
    found = {str(path.relative_to(base)): oct(path.stat().st_mode & 0o777) for path in folders}
    assert found == dict.fromkeys((".", "7", "7/variables", "7/assets.extra"), oct(0o777 & ~umask))


def test_versions_increase_within_a_second_and_when_the_clock_goes_back(model, base):
    pushed = [versions.push_version(model, base, now) for now in (1000, 1000.5, 400, 2000)]
    assert pushed == [1000, 1001, 1002, 2000]
    assert versions.list_versions(base) == pushed


def test_a_version_that_another_push_took_in_between_is_skipped(model, base, monkeypatch):
    copy = versions.copy_tree
    monkeypatch.setattr(versions, "_candidates", lambda *_: iter([1000, 1001]))

    def copy_while_another_pushes(source, destination):
        copy(source, destination)
        copy(source, os.path.join(base, "1000"))

    monkeypatch.setattr(versions, "copy_tree", copy_while_another_pushes)
    assert versions.push_version(model, base, 1000) == 1001
    assert sorted(os.listdir(base)) == ["1000", "1001"]


@pytest.mark.parametrize("is_bucket", [False, True])
def test_nothing_is_pushed_after_a_signal(model, base, monkeypatch, is_bucket):
    """Even if its exception was dropped, as in a destructor: the pending request is enough."""
    module, name = (io_utils, "copy_dir") if is_bucket else (versions, "copy_tree")
    copy = getattr(module, name)

    def copy_while_a_signal_comes(*arguments, **options):
        copy(*arguments, **options)
        monkeypatch.setattr(interruption, "reason", "SIGTERM")

    monkeypatch.setattr(module, name, copy_while_a_signal_comes)
    if is_bucket:
        base = "ram://bucket/serving"
    with pytest.raises(RunInterruptedError, match="SIGTERM"):
        versions.push_version(model, base, 1000)
    if is_bucket:
        assert not tf.io.gfile.exists(f"{base}/1000/saved_model.pb")
    else:
        assert os.listdir(base) == []


def test_a_push_that_fails_leaves_no_version(model, base, monkeypatch):
    copy = versions.copy_tree

    def copy_and_fail(source, destination):
        copy(source, destination)
        assert versions.list_versions(base) == []  # A whole copy, and nothing to see yet.
        raise OSError("disk full")

    monkeypatch.setattr(versions, "copy_tree", copy_and_fail)
    with pytest.raises(OSError, match="disk full"):
        versions.push_version(model, base, 1000)
    assert os.listdir(base) == []


def test_leftovers_and_other_files_are_no_versions(base):
    for name in ("7", ".pushing-1", "temp-8", "9x", "007", "1.partial", "²", "-8", "+9", str(2**63)):
        add_model(Path(base) / name)
    (Path(base) / "10").write_text("a file")
    (Path(base) / "11").mkdir()  # half copied
    (Path(base) / "12").symlink_to(Path(base) / "nowhere")
    (Path(base) / "13" / "saved_model.pb").mkdir(parents=True)
    assert versions.list_versions(base) == [7]
    assert misleading_names(base) == ["007", "10", "11", "12", "13"]  # as TF Serving would pick it


def test_a_version_may_be_a_text_or_behind_a_link_and_versions_are_sorted_by_number(base):
    (Path(base) / "7").mkdir(parents=True)
    (Path(base) / "7" / "saved_model.pbtxt").touch()
    for link in ("999", "1000", "10"):
        (Path(base) / link).symlink_to("7")
    assert versions.list_versions(base) == [7, 10, 999, 1000]


def test_a_version_is_higher_than_what_only_looks_like_one(model, base):
    (Path(base) / "2000").mkdir(parents=True)
    (Path(base) / "0003000").write_text("a file")
    (Path(base) / str(2**63 - 1)).touch()  # there is no higher one
    assert versions.push_version(model, base, 1000) == 3001
    assert misleading_names(base) == [str(2**63 - 1)]


@pytest.mark.parametrize(
    ("keep", "left"), [(1, ["1003"]), (2, ["1002", "1003"]), (9, ["1001", "1002", "1003"])]
)
def test_pruning_keeps_the_newest(model, base, keep, left):
    for now in (1001, 1002, 1003):
        versions.push_version(model, base, now)
    removed = versions.prune_versions(base, keep)
    assert sorted(os.listdir(base)) == left
    assert sorted([*map(str, removed), *left]) == ["1001", "1002", "1003"]


def test_pruning_removes_a_link_but_not_the_model_behind_it(model, base):
    os.mkdir(base)
    os.symlink(model, os.path.join(base, "7"))
    versions.push_version(model, base, now_secs=1000)
    assert versions.prune_versions(base, 1) == [7]
    assert os.listdir(base) == ["1000"]
    assert (Path(model) / "variables" / "variables.index").read_text() == "index"
