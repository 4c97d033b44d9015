import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import pipelines
from pipelines.data.formats.cell_format import FILE, CellFormat, formats_to_json
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import BadInputError
from pipelines.serving.model import Model
from pipelines.serving.saved_model import SERVING_ROWS

PROJECT = pathlib.Path(__file__).parents[3]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.more
def test_the_version_that_serves_is_loaded_unless_another_one_is_named(push, tmp_path):
    push("negated", 3)
    root = push("classifier", 5)
    assert pipelines.load(root).version == 5
    assert pipelines.load(str(root), version=3).version == 3
    (root / "withdrawn").mkdir()
    (root / "serving" / "5").rename(root / "withdrawn" / "5")
    assert pipelines.load(root).version == 3
    assert pipelines.load(root, 5).version == 5


def test_a_version_that_is_not_there_is_named_with_those_that_are(push, tmp_path):
    with pytest.raises(
        BadInputError, match=r"no model in .*root: no run has pushed one .* own pipeline pushes to"
    ):
        pipelines.load(tmp_path / "root")
    root = push("classifier", 5)
    with pytest.raises(BadInputError, match=r"no version 4 .* Served: 5; withdrawn: none"):
        pipelines.load(root, 4)


def test_a_classifier_predicts_class_and_probability_of_the_columns_that_it_parses(push):
    model = pipelines.load(push("classifier", 1))
    found = model.predict(
        [{"x": 1.5, "n": 1, "city": "Oslo"}, {"x": -2, "n": None}, {"x": 0.5, "city": "Rome"}]
    )
    assert list(found) == ["class", "probability", "probability_no", "probability_yes"]
    assert found["class"].tolist() == ["yes", "no", "yes"]
    yes = sigmoid(np.array([3.5, -2.0, 0.5]))
    np.testing.assert_allclose(found["probability_yes"], yes, rtol=1e-6)
    np.testing.assert_allclose(found["probability"], [yes[0], 1 - yes[1], yes[2]], rtol=1e-6)
    assert {name: (one.type, one.is_required) for name, one in model.columns.items()} == {
        "x": ("FLOAT", False),
        "n": ("INT", False),
        "city": ("BYTES", False),
    }


@pytest.mark.parametrize("name", ["regressor", "raw"])
def test_a_regression_predicts_a_value(push, name):
    model = pipelines.load(push(name, 1))
    found = model.predict({"x": [1.5, 2], "n": [1, 2], "city": ["Oslo", "Rome"]})
    assert list(found) == ["value"]
    assert found["value"].tolist() == [3.5, 4.0]


def test_a_data_frame_many_rows_and_none_are_predicted_row_by_row(push):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"x": [1.0, None], "n": [1.0, None], "city": [None, "Oslo"], "label": [1, 2]}, index=[7, 7]
    )
    model = pipelines.load(push("regressor", 1))
    assert model.predict(frame)["value"].tolist() == [2.0, 1.0]
    numbers = np.arange(10_000)
    np.testing.assert_array_equal(model.predict({"n": numbers})["value"], numbers)
    assert model.predict([])["value"].tolist() == []


def test_a_model_without_serving_rows_is_loaded_as_well(push):
    model = pipelines.load(push("examples only", 1))
    assert "serving_rows" not in model.signatures
    assert model.predict([{"x": 3}])["class"].tolist() == ["yes"]


def test_a_value_that_the_model_needs_is_asked_for(push):
    model = pipelines.load(push("needed", 1))
    assert model.predict([{"x": 1, "n": 2, "city": "Oslo"}])["value"].tolist() == [4.0]
    with pytest.raises(BadInputError, match="row 2, column 'n': there is no value"):
        model.predict([{"x": 1, "n": 2, "city": "a"}, {"x": 1, "n": None, "city": "a"}])


def test_a_folder_that_is_no_model_is_named(tmp_path):
    folder = tmp_path / "root" / "serving" / "3"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"\xff\xff no model")
    with pytest.raises(BadInputError, match="serving/3 holds no SavedModel"):
        pipelines.load(tmp_path / "root")


@pytest.mark.more
def test_nothing_but_tensorflow_and_numpy_is_imported(push):
    """Compared with a process that imports TensorFlow alone."""
    root = push("classifier", 1)
    script = """
import sys
import tensorflow, tensorflow.core.protobuf.saved_model_pb2
before = {name.partition(".")[0] for name in sys.modules}
import pipelines
assert "pipelines.serving" not in sys.modules
model = pipelines.load(sys.argv[1])
print(model.predict([{"x": 1, "n": None}]), model.explain([{"x": 1}], background=[{"n": 2}]))
names = {name.partition(".")[0] for name in sys.modules} - before - set(sys.stdlib_module_names)
print("new:", *sorted(name for name in names if not name.startswith("_")))
"""
    result = subprocess.run(
        [sys.executable, "-c", script, str(root)],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "new: components pipelines"


def test_a_list_is_refused_where_a_model_without_rows_reads_numbers_of_text(push):
    root = push("examples only", 1)
    extra = root / "serving" / "1" / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / FILE).write_text(formats_to_json({"city": CellFormat(NumberFormat(","))}))
    model = pipelines.load(root)
    assert SERVING_ROWS not in model.signatures
    with pytest.raises(BadInputError, match=r"row 1, column 'city': \['1,5', '2'\] are several values"):
        model.predict([{"city": ["1,5", "2"]}])
    assert len(model.predict([{"city": ["1,5"]}])["class"]) == 1


def test_names_of_columns_that_python_does_not_take_are_loaded_without_a_warning(tmp_path, caplog):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        cell = tf.compat.v1.placeholder(tf.string, [None], "cell")
        own = tf.compat.v1.placeholder(tf.string, [None], "own")
        total = tf.strings.length(cell) - tf.strings.length(own)
        tf.compat.v1.saved_model.simple_save(
            session, str(tmp_path / "7"), {"Heating type": cell, "self": own}, {"value": total}
        )
    caplog.clear()
    model = Model(tmp_path / "7")
    inputs = {"Heating type": np.array([b"gas", b"oil"]), "self": np.array([b"", b"yes"])}
    assert model.run("serving_default", inputs)["value"].tolist() == [3, 0]
    assert "Heating type" not in caplog.text
    tf.saved_model.load(str(tmp_path / "7"))  # the program's own models still warn
    assert "Heating type" in caplog.text
