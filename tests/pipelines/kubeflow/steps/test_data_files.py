import hashlib
from pathlib import Path

import pytest

from pipelines.data.profile import profile_csv
from pipelines.data.staging import StagedData
from pipelines.errors import RunFailedError
from pipelines.kubeflow.steps.data_files import check_as_profiled, check_data_files, data_files_of


@pytest.fixture
def folder(tmp_path):
    for name, text in (("train/a.csv", "a"), ("train/b.csv", "b"), ("eval/a.csv", "c")):
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "data" / "train" / "readme.txt").write_text("not read")
    return tmp_path / "data"


@pytest.fixture
def planned(folder):
    splits = (("train", "train/*.csv"), ("eval", "eval/*.csv"))
    return data_files_of(StagedData(folder, "*.csv", (), splits)).as_plan()


def test_files_are_known_by_their_content(folder, planned):
    assert planned == {
        "folder": str(folder),
        "patterns": ["train/*.csv", "eval/*.csv"],
        "files": {
            "eval/a.csv": hashlib.sha256(b"c").hexdigest(),
            "train/a.csv": hashlib.sha256(b"a").hexdigest(),
            "train/b.csv": hashlib.sha256(b"b").hexdigest(),
        },
    }
    check_data_files(planned, "CsvExampleGen")
    (folder / "train" / "readme.txt").write_text("changed")
    check_data_files(planned, "CsvExampleGen")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda folder: (folder / "train" / "b.csv").write_text("d"),
            "changed after .*: train/b.csv in ",
        ),
        (lambda folder: (folder / "eval" / "a.csv").unlink(), "are gone: eval/a.csv in "),
        (
            lambda folder: (folder / "eval" / "z.csv").write_text("new"),
            "were added .*: eval/z.csv in ",
        ),
        (lambda folder: folder.rename(folder.parent / "away"), "gone: eval/a.csv and 2 more in "),
    ],
)
def test_what_changed_is_said(folder, planned, change, said):
    change(folder)
    with pytest.raises(RunFailedError, match=said) as caught:
        check_data_files(planned, "CsvExampleGen")
    assert caught.value.component == "CsvExampleGen"


def test_files_are_held_against_their_profile(data):
    profile = profile_csv([data])
    check_as_profiled(profile, "Plan")
    data.write_text(data.read_text().replace("3.5,1", "3.5,0"))
    with pytest.raises(RunFailedError, match="changed while they were read"):
        check_as_profiled(profile, "Plan")
    Path(data).unlink()
    with pytest.raises(RunFailedError, match=f"was removed after it was read: {data}"):
        check_as_profiled(profile, "Plan")
