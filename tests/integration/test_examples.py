"""The examples as a user runs them: `init --example`, `run`, and a prediction in Python."""

import json

import numpy as np
import pytest

import pipelines

pytestmark = pytest.mark.slow  # a whole pipeline each, as test_csv_to_saved_model.py

# Rows of which the model must tell apart the first, with the higher prediction, from the second.
ROWS = {
    "keras_model": [
        {"distance_km": 900, "weight_kg": 25, "carrier": "Kite"},
        {"distance_km": 20, "weight_kg": None, "carrier": "Heron"},
    ],
    "run_fn": [
        {"temperature": -5, "residents": 3, "heating": "electric", "weekend": "yes"},
        {"temperature": 20.5, "residents": 3, "heating": "a new one", "weekend": "no"},
    ],
    "tpu": [
        {"celsius": 75, "vibration_mm": 3, "pressure_bar": 10},
        {"celsius": 45, "vibration_mm": 0.3, "pressure_bar": 8},
    ],
}
PREDICTION = {"keras_model": "late", "recommender": "value", "run_fn": "value", "tpu": "probability"}


def run(warm_command, example, folder):
    """Makes the project and runs it; returns the last line of the run."""
    made = warm_command("init", folder, "--example", example)
    assert made.returncode == 0, made.stderr[-3000:]
    ran = warm_command("run", "--config", "pipeline.toml", cwd=folder)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("example", ["run_fn", "keras_model", "tpu"])
def test_an_example_is_pushed_and_predicts(example, warm_command, tmp_path):
    outcome = run(warm_command, example, tmp_path / example)
    assert (outcome["status"], outcome["not_checked"]) == ("pushed", [])
    assert {check["against"] for check in outcome["checks"]} >= {"trivial"}
    model = pipelines.load(tmp_path / example / "pipeline_root")
    assert {"serving_default", "serving_rows"} <= {*model.signatures}
    high, low = model.predict(ROWS[example])[PREDICTION[example]]
    assert high > low
    bounds = (0, 1) if PREDICTION[example] != "value" else (0, 60)
    assert bounds[0] < low < high < bounds[1]


def test_the_recommender_knows_the_tastes_of_users(warm_command, tmp_path):
    """A new user gets about the average, and known users differ from it."""
    outcome = run(warm_command, "recommender", tmp_path / "films")
    assert (outcome["status"], outcome["not_checked"]) == ("pushed", [])
    assert outcome["metrics"]["root_mean_squared_error"] < 0.75
    model = pipelines.load(tmp_path / "films" / "pipeline_root")
    assert "serving_rows" in model.signatures
    users = ["user 1", "user 2", "a new one", "another new one"]
    asked = [{"user": user, "film": f"film {film}"} for user in users for film in range(80)]
    stars = model.predict(asked)["value"].reshape(4, 80)
    np.testing.assert_array_equal(stars[2], stars[3])
    assert abs(stars[0] - stars[1]).mean() > 0.3
    assert abs(stars[2].mean() - outcome["metrics"]["mean_label"]) < 0.3
