import os

import pytest

from pipelines.data import file_states
from pipelines.data.file_states import FileState, check_unchanged, read_states
from pipelines.errors import BadInputError


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("x\n1\n")
    return file


def rewrite(file):
    """Writes other content of the same size, and gives the file its old time."""
    times = file.stat()
    file.write_text("x\n2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace_and_restore(file):
    file.rename(file.with_name("kept"))
    file.write_text("x\n2\n")
    file.with_name("kept").rename(file)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rewrite, "data.csv was changed while the data were being read"),
        (replace_and_restore, "data.csv was changed while the data were being read"),
        (lambda file: file.unlink(), "data.csv was deleted after it was read"),
    ],
)
def test_a_file_that_is_not_as_it_was_is_named(file, change, said):
    states = read_states([file])
    check_unchanged(states)
    change(file)
    with pytest.raises(BadInputError, match=said):
        check_unchanged(states)


def test_a_file_that_is_written_while_it_is_hashed_has_no_state(file, monkeypatch):
    digest = file_states.hashlib.file_digest

    def slow(*arguments):
        found = digest(*arguments)
        file.write_text("x\n1\n2\n")
        return found

    monkeypatch.setattr(file_states.hashlib, "file_digest", slow)
    with pytest.raises(BadInputError, match=r"data\.csv was changed while it was being read"):
        FileState.read(file)
