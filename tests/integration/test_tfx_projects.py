"""Projects written for TFX of 2020, from their CSV to a pushed model: changed by one import, and as is."""

import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft

from components.user import code as user_code
from tests.integration.test_old_pipelines import trips, write_rows

PROJECTS = Path(__file__).with_name("tfx_projects")
IMPORTS = {
    "import tensorflow as tf": "import estimator_core\nimport tensorflow as tf",
    "tf.compat.v1.estimator.": "estimator_core.v1.",
    "tf.estimator.": "estimator_core.",
}
FORMS = ["as it is", "import changed"]


def loans(count=300):
    """Yields loans of pages / 20 days, and 5 more for poetry."""
    draw = random.Random(9)
    for _ in range(count):
        pages, genre = draw.randrange(80, 600), draw.choice(("poetry", "crime", "travel"))
        age = "" if draw.random() < 0.05 else draw.randrange(8, 90)
        days = f"{pages / 20 + 5 * (genre == 'poetry') + draw.gauss(0, 1):.1f}"
        yield {"pages": pages, "borrowers_age": age, "genre": genre, "days": days}


def write_project(name, rows, form, folder):
    """Writes a project's module, configuration and data into a folder."""
    source = (PROJECTS / f"{name}.py").read_text()
    if form == "import changed":
        for old, new in IMPORTS.items():
            source = source.replace(old, new)
        assert "tf.estimator" not in source
        assert "compat.v1.estimator" not in source
    (folder / f"{name}.py").write_text(source)
    (folder / f"{name}.toml").write_text((PROJECTS / f"{name}.toml").read_text())
    write_rows(folder / f"{name}.csv", rows)


def run(warm_command, name, folder):
    """Runs the project; returns the last line and the root."""
    config = folder / f"{name}.toml"
    result = warm_command("run", "--config", config, "--root", folder / "root", cwd=folder)
    assert result.returncode == 0
    line = json.loads(result.stdout.splitlines()[-1])
    assert line["status"] == "pushed"
    return line, folder / "root"


def raw_examples(**columns):
    """Returns raw tf.Examples, each serialized; None leaves a value out."""
    examples = []
    for values in zip(*columns.values(), strict=True):
        example = tf.train.Example()
        for name, value in zip(columns, values, strict=True):
            feature = example.features.feature[name]
            if isinstance(value, str):
                feature.bytes_list.value.append(value.encode())
            elif isinstance(value, int):
                feature.int64_list.value.append(value)
            elif value is not None:
                feature.float_list.value.append(value)
        examples.append(example.SerializeToString())
    return examples


def load(module_file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TFX's libraries warn of themselves when imported
        return user_code.load_module_file(str(module_file))


def newest(component, key):
    return max(component.glob(f"*/{key}"), key=lambda path: path.stat().st_mtime)


def predictions(build_estimator, root, serialized, without):
    """Returns the predictions of the trained Estimator itself for raw examples."""
    artifacts = root / "artifacts"
    transform = tft.TFTransformOutput(str(newest(artifacts / "Transform", "transform_graph")))
    model_dir = newest(artifacts / "Trainer", "model_run") / "Format-Serving"

    def input_fn():
        spec = transform.raw_feature_spec()
        del spec[without]
        features = tf.io.parse_example(serialized, spec)
        return tf.data.Dataset.from_tensors(transform.transform_raw_features(features))

    return list(build_estimator(transform, str(model_dir)).predict(input_fn))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_trainer_fn_project(warm_command, form, tmp_path, uninstalled):
    write_project("taxi_module", trips(), form, tmp_path)
    line, root = run(warm_command, "taxi_module", tmp_path)
    # Nine of ten trips with a card, and no other, have a tip; chance is 0.5.
    assert line["metrics"]["auc"] > 0.75
    examples = raw_examples(
        fare=[8.0, 30.0, None], payment_type=["Card", "Cash", "a new one"], trip_start_hour=[1, 3, None]
    )
    served = tf.saved_model.load(str(root / "serving" / line["version"]))
    answer = served.signatures["predict"](examples=tf.constant(examples))
    module = load(tmp_path / "taxi_module.py")

    def build_estimator(_, model_dir):
        return module._estimator(model_dir, None, {"hidden_units": [8]})

    own = predictions(build_estimator, root, examples, without="tips")
    logistic = np.array([prediction["logistic"] for prediction in own])
    np.testing.assert_allclose(answer["logistic"], logistic, rtol=1e-5)
    assert logistic[0, 0] > 0.5 > logistic[1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_run_fn_project(warm_command, form, tmp_path, uninstalled):
    write_project("book_loans", list(loans()), form, tmp_path)
    line, root = run(warm_command, "book_loans", tmp_path)
    # The noise alone gives 1; saying the mean gives (26**2 / 12 + 5**2 * 2 / 9)**0.5 = 7.9.
    assert 0.8 < line["metrics"]["root_mean_squared_error"] < 4
    examples = raw_examples(
        pages=[100, 500, 300], borrowers_age=[10, 70, None], genre=["crime", "poetry", "a new one"]
    )
    served = tf.saved_model.load(str(root / "serving" / line["version"]))
    answer = served.signatures["predict"](examples=tf.constant(examples))
    module = load(tmp_path / "book_loans.py")
    own = predictions(module.build_estimator, root, examples, without="days")
    days = np.array([prediction["predictions"] for prediction in own])
    np.testing.assert_allclose(answer["predictions"], days, rtol=1e-5)
    # 100 / 20 = 5 days of crime, 500 / 20 + 5 = 30 of poetry.
    assert days[:2, 0] == pytest.approx([5, 30], abs=5)
