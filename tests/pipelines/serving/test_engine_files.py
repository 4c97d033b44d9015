from pathlib import Path

import pytest

import pipelines
from pipelines.errors import BadInputError
from pipelines.serving.engine_files import predict_on_engine
from pipelines.serving.files import Reading

IN_PROCESS = ["--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"]


@pytest.fixture
def model(push):
    return pipelines.load(push("regressor", 1)).folder


@pytest.fixture
def rows(tmp_path):
    """A folder of three files; the last row of the second one is as given."""

    def write(last="4,Oslo"):
        folder = tmp_path / "rows"
        folder.mkdir()
        for name, lines in {"a": "1,", "b": f"2,\n{last}", "c": "3,Oslo"}.items():
            (folder / f"{name}.csv").write_text(f"x,city\n{lines}\n")
        return str(folder)

    return write


def test_each_file_of_rows_becomes_one_of_predictions(model, rows, tmp_path):
    said = []
    count = predict_on_engine(model, rows(), tmp_path / "out", Reading(), IN_PROCESS, said.append)
    assert count == 4
    assert {file.name: file.read_text() for file in sorted((tmp_path / "out").iterdir())} == {
        "part-00000-of-00003.csv": "x,city,value\n1,,1\n",
        "part-00001-of-00003.csv": "x,city,value\n2,,2\n4,Oslo,5\n",
        "part-00002-of-00003.csv": "x,city,value\n3,Oslo,4\n",
    }
    assert len(said) == 3  # each file has no column n
    assert all("has no column 'n'" in line for line in said)


def test_a_bad_cell_leaves_no_folder_and_is_named_as_without_an_engine(model, rows, tmp_path):
    data = rows(last="oops,Oslo")
    with pytest.raises(
        BadInputError, match=r"^\S+/rows/b.csv, line 3, column 'x': 'oops' is not a"
    ):
        predict_on_engine(model, data, tmp_path / "out", Reading(), IN_PROCESS, print)
    assert [file.name for file in tmp_path.iterdir() if "out" in file.name] == []


def test_what_exists_is_not_written_to(model, rows, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    data = rows()
    for taken in ("out", "link", "."):
        with pytest.raises(
            BadInputError, match=r"exists. With --runner beam, -o names a new folder"
        ):
            predict_on_engine(model, data, tmp_path / taken, Reading(), IN_PROCESS, print)
    assert {"link", "out"} <= {file.name for file in tmp_path.iterdir()}
    assert not [*tmp_path.glob(".*")]


def test_a_file_without_rows_has_no_part_and_other_columns_are_refused(
    model, rows, tmp_path, monkeypatch
):
    data = rows()
    (tmp_path / "rows" / "aa.csv").write_text("x,city\n")
    monkeypatch.chdir(tmp_path)
    predict_on_engine(model, data, Path("out"), Reading(), IN_PROCESS, print)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        f"part-{number:05d}-of-00003.csv" for number in range(3)
    ]
    (tmp_path / "rows" / "d.csv").write_text("city,x\nOslo,1\n")
    with pytest.raises(BadInputError, match=r"d.csv has other columns than \S+/a.csv"):
        predict_on_engine(model, data, tmp_path / "other", Reading(), IN_PROCESS, print)
    assert not (tmp_path / "other").exists()
