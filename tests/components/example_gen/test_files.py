import components  # noqa: I001  Before TFX: makes TFDV importable.

import hashlib
import json

import pytest
from tfx.utils import io_utils

from components.errors import SettingError
from components.example_gen.files import PlannedFiles

assert components

PATTERNS = ["train/*.csv", "eval/*.csv"]


@pytest.fixture
def folder(tmp_path):
    for name, text in (("train/a.csv", "a"), ("train/b.csv", "b"), ("eval/a.csv", "c")):
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "data" / "train" / "readme.txt").write_text("not read")
    return tmp_path / "data"


def test_files_are_known_by_their_content(folder):
    fingerprint = PlannedFiles(str(folder), PATTERNS).fingerprint
    assert json.loads(fingerprint) == {
        "eval/a.csv": hashlib.sha256(b"c").hexdigest(),
        "train/a.csv": hashlib.sha256(b"a").hexdigest(),
        "train/b.csv": hashlib.sha256(b"b").hexdigest(),
    }
    (folder / "train" / "readme.txt").write_text("changed")
    PlannedFiles(str(folder), PATTERNS, fingerprint).check_contents()


def test_a_fingerprint_of_tfx_plans_the_files_that_are_there(folder):
    splits = [("train", "*.csv"), ("eval", "*.csv")]
    theirs = "\n".join(io_utils.generate_fingerprint(one, str(folder / one / file)) for one, file in splits)
    ours = PlannedFiles(str(folder), PATTERNS).fingerprint
    assert PlannedFiles(str(folder), PATTERNS, theirs).fingerprint == ours


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "train" / "b.csv").write_text("d"), "train/b.csv was changed after"),
        (lambda folder: (folder / "eval" / "a.csv").unlink(), "eval/a.csv was deleted after"),
        (lambda folder: (folder / "eval" / "z.csv").write_text("new"), "eval/z.csv was added after"),
        (lambda folder: folder.rename(folder.parent / "away"), r"eval/a.csv was deleted .* \(and 2 more\)"),
    ],
)
def test_what_changed_is_said(folder, change, said):
    planned = PlannedFiles(str(folder), PATTERNS)
    change(folder)
    with pytest.raises(SettingError, match=said):
        planned.check_contents()
