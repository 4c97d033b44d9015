"""Models without a root: a SavedModel, or a folder of numbered ones."""

import pathlib
import shutil
import subprocess
import sys

import pandas as pd
import pytest

import pipelines
from pipelines.errors import BadInputError
from pipelines.serving.model import ModelFolder
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.versions import ServedVersions

OLD_EXPORT = pathlib.Path(__file__).parent / "old_export"


@pytest.fixture
def folder(push, tmp_path):
    """TensorFlow Serving's layout, with versions 3 and 5."""
    push("negated", 3)
    return (push("classifier", 5) / "serving").rename(tmp_path / "sums")


def test_the_highest_number_is_loaded_unless_another_one_is_named(folder):
    assert pipelines.load(folder).version == 5
    assert pipelines.load(folder, 3).version == 3
    assert pipelines.load(folder / "3").version == 3
    with pytest.raises(BadInputError, match=r"no version 4 in .*sums: 3, 5\."):
        pipelines.load(folder, 4)


def test_a_saved_model_without_a_number_is_version_1(folder, tmp_path):
    shutil.copytree(folder / "5", tmp_path / "exported")
    model = pipelines.load(tmp_path / "exported")
    assert model.version == 1
    rows = [{"x": 1.5, "n": 1, "city": "Oslo"}, {"x": -2, "n": None}]
    assert model.predict(rows)["class"].tolist() == ["yes", "no"]


@pytest.mark.more
@pytest.mark.parametrize(("path", "name", "versions"), [("", "sums", [5, 3]), ("3", "sums", [3])])
def test_a_server_has_its_versions_and_loads_newer_ones(folder, path, name, versions):
    place = ModelFolder(folder / path)
    assert place.name == name
    served = ServedVersions(place, name, ServerMetrics(), num_versions=2, load=str)
    served.refresh()
    assert served.versions() == versions
    shutil.copytree(folder / "5", folder / "7")
    served.refresh()
    assert served.versions() == (versions if path else [7, 5])


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(BadInputError, match=r"is neither a SavedModel.*nor a folder of SavedModels named by"):
        ModelFolder(tmp_path)


def test_the_commands_take_a_model_or_a_root(warm_command, folder, tmp_path):
    (tmp_path / "new.csv").write_text("x,n,city\n1.5,1,Oslo\n-2,,\n")
    predict = ("predict", "--data", tmp_path / "new.csv")
    ended = warm_command(*predict, "--model", folder)
    assert ended.returncode == 0
    assert [line.split(",")[3] for line in ended.stdout.splitlines()] == ["class", "yes", "no"]
    for words, message in (
        ((*predict, "--root", tmp_path, "--model", folder), "--model takes the place of --root"),
        (("serve", "--model", folder, "--sample-requests", "0.5"), "stores rows in a root"),
        (("serve", "--model", tmp_path), "neither a SavedModel"),
    ):
        refused = warm_command(*words)
        assert refused.returncode == 2
        assert message in refused.stderr


def test_an_old_export_predicts_a_file_and_a_frame(warm_command, tmp_path):
    """Its value is twice the price plus the number of letters."""
    file = tmp_path / "new.csv"
    file.write_text("price,kind\n4.5,bcd\n1,\n")
    ended = warm_command("predict", "--model", OLD_EXPORT, "--data", file)
    header, *rows = (line.split(",") for line in ended.stdout.splitlines())
    assert {name: cells for name, *cells in zip(header, *rows, strict=True)} == {
        "price": ["4.5", "1"], "kind": ["bcd", ""], "value": ["12", "2"], "name": ["BCD", ""],
    }  # fmt: skip
    model = pipelines.load(OLD_EXPORT)
    assert model.predict(pd.read_csv(file))["value"].tolist() == [12, 2]
    assert model.predict(pd.read_csv(file, dtype=str))["value"].tolist() == [12, 2]
    with pytest.raises(BadInputError, match=r"row 1, column 'kind': 7 is not text.* dtype=str"):
        model.predict(pd.DataFrame({"price": [1], "kind": [7]}))


@pytest.mark.more
def test_loading_and_the_first_prediction_print_nothing():
    program = (
        f"import pipelines; print(pipelines.load({str(OLD_EXPORT)!r}).predict([{{'price': 4.5}}])['value'])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("[9.]\n", "")
