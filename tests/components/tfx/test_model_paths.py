from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from components.tfx import model_paths


def leave(directory, name="saved_model.pb"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).touch()


def test_the_evaluation_model_is_the_newest_export_or_the_one_left_by_hand(make_artifact):
    uri = make_artifact(standard_artifacts.Model).uri
    assert model_paths.eval_model_path(uri) is None
    for name in ("9", "10", "temp-11"):
        leave(Path(uri, "Format-TFMA", name))
    Path(uri, "Format-TFMA", "12").mkdir()  # an export that was not finished
    assert model_paths.eval_model_path(uri) == f"{uri}/Format-TFMA/10"
    leave(Path(uri, "Format-TFMA"))
    assert model_paths.eval_model_path(uri) == f"{uri}/Format-TFMA"


def test_the_serving_model_is_found_however_it_was_left(make_artifact):
    model = make_artifact(standard_artifacts.Model)
    directory = Path(model.uri, "Format-Serving")
    for path in (
        "export/taxi/1600000099",  # by an exporter, of an Estimator that trained here
        "export/taxi/1600000100",
        "999",  # by export_saved_model
        "1600000001",
        "",  # by hand
    ):
        leave(directory / path)
        assert model_paths.serving_model_path(model) == str(directory / path)


def test_a_directory_without_a_model_to_serve_or_with_those_of_two_exporters(tmp_path):
    leave(tmp_path / "variables", "variables.index")
    (tmp_path / "export" / "taxi" / "1").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=f"no SavedModel in {tmp_path}, nor in"):
        model_paths.find_serving_model(str(tmp_path))
    leave(tmp_path / "export" / "best" / "1")
    leave(tmp_path / "export" / "a" / "2")
    with pytest.raises(ValueError, match=r"Several exporters left one in .*export: a, best\. Copy"):
        model_paths.find_serving_model(str(tmp_path))
    leave(tmp_path / "7", "saved_model.pbtxt")  # a model in text counts
    assert model_paths.find_serving_model(str(tmp_path)) == str(tmp_path / "7")
