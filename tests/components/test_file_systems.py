import errno
import fcntl
import os

import pytest

from components import file_systems
from components.errors import SettingError

LACKING = [errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP]


@pytest.fixture
def failing(monkeypatch):
    """Returns a function that makes a system call fail with an error number."""

    def fail_with(module, name, number):
        def fail(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(module, name, fail)
        monkeypatch.setattr(file_systems, "_warned", set())

    return fail_with


@pytest.mark.parametrize("number", LACKING)
def test_a_missing_fsync_is_reported_once_for_directories_and_for_files(tmp_path, failing, caplog, number):
    failing(os, "fsync", number)
    (tmp_path / "file").touch()
    for _ in range(3):
        file_systems.sync(tmp_path)
        file_systems.sync(tmp_path / "file")
    directories, files = [record.getMessage() for record in caplog.records]
    assert f"The file system of {tmp_path} has no fsync for directories" in directories
    assert os.strerror(number) in directories
    assert f"The file system of {tmp_path / 'file'} has no fsync for files" in files
    failing(os, "fsync", errno.EIO)  # an error of the disk is not a missing fsync
    with pytest.raises(OSError, match=f"Input/output error: '{tmp_path}'"):
        file_systems.sync(tmp_path)


@pytest.mark.parametrize("number", LACKING)
def test_a_missing_flock_is_an_error_with_the_file_and_a_held_lock_is_another(tmp_path, failing, number):
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        file_systems.lock(first, path, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            file_systems.lock(second, path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        failing(fcntl, "flock", number)
        with pytest.raises(SettingError, match=rf"{path} cannot be locked \(flock: .*local disk"):
            file_systems.lock(first, path, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_tree_is_removed_but_not_what_its_links_point_to(tmp_path):
    for name in ("tree/deep/file", "others/file"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "others")
    (tmp_path / "link").symlink_to(tmp_path / "others")
    file_systems.remove_tree(str(tmp_path / "tree"))
    file_systems.remove_tree(str(tmp_path / "link"))
    assert [path.name for path in tmp_path.rglob("*")] == ["others", "file"]


def test_a_copied_tree_has_what_links_point_to(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "weights").write_text("1")
    source = tmp_path / "source"
    source.mkdir()
    (source / "folder").symlink_to(real)
    (source / "file").symlink_to(real / "weights")
    file_systems.copy_tree(source, tmp_path / "target")
    assert (tmp_path / "target" / "folder" / "weights").read_text() == "1"
    assert (tmp_path / "target" / "file").read_text() == "1"
    assert not any(path.is_symlink() for path in (tmp_path / "target").rglob("*"))
    for what in ("missing", "real/weights"):  # no trees
        with pytest.raises(OSError, match=what):
            file_systems.copy_tree(tmp_path / what, tmp_path / "other target")
