"""estimator_core against the observations of tf.estimator 2.15 for the same programs (see README.md)."""

import importlib
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from tests.circles import in_circles
from tests.oracle import observe
from tests.oracle.bands import TOLERANCES
from tests.oracle.programs import PROGRAMS, SCENARIOS
from tests.oracle.programs.program import STEPS

EXPECTED = pathlib.Path(__file__).parent / "expected"
HAS_LEGACY_KERAS = tf.keras.Model.__module__.startswith("tf_keras")
# Differences where `tf.compat.v1.disable_v2_behavior()` was called (`make test-tf1`).
TF1_BEHAVIOR = not tf.executing_eagerly()
NOT_AS_IN_TENSORFLOW_1 = {
    "estimator_export": "reads the exported model eagerly",
    "legacy_keras_model_to_estimator": "Keras 2 calls its metric acc there",
    "rnn_cell_class": "the cells of Keras 3 need the shapes of TensorFlow 2",
    "rnn_cell_fn": "the cells of Keras 3 need the shapes of TensorFlow 2",
    "tpu_on_the_host": "a ref variable is read beside the step that counts it, there as well",
}

# What `make test` runs: one or two of each family.
FIRST = {
    "baseline_regressor", "columns_dnn_dense", "combined_classifier", "custom_classifier",
    "dnn_regressor_adam", "estimator_arguments", "estimator_evaluate", "estimator_export", "hooks_calls",
    "hooks_not_a_number", "hooks_order", "kmeans_euclidean", "linear_classifier_words", "linear_with_binary",
    "rnn_lstm_words", "sdca_regressor", "tpu_classifier", "train_and_evaluate_throttled",
    "v1_dnn_classifier", "warm_start_with_renamed_variables",
}  # fmt: skip
# Variants of others, which take long.
SLOW = {
    "rnn_cell_class", "rnn_cell_fn", "rnn_gru_one_layer", "rnn_sequences", "rnn_sequences_multi_label",
    "rnn_sequences_weighted", "rnn_simple_one_layer", "sdca_classifier_weighted",
    "train_and_evaluate_early_stopping", "sdca_v1_classifier", "v1_combined_classifier",
    "v1_combined_regressor_partitioned", "v1_dnn_classifier_batch_norm", "v1_slots_of_several_parts",
}  # fmt: skip


def skip_in_tensorflow_1(name):
    """Skips a program that can't be the same where it begins as those of TensorFlow 1 do."""
    if TF1_BEHAVIOR and name in NOT_AS_IN_TENSORFLOW_1:
        pytest.skip(NOT_AS_IN_TENSORFLOW_1[name])


def expected_of(name):
    text = (EXPECTED / f"{name}.json").read_text()
    if TF1_BEHAVIOR and name == "log_lines":  # the reference logs 1 and 101 there, not 0 and 100
        text = re.sub(
            r"(loss = [-.0-9]+, step = )(\d+)", lambda found: found[1] + str(int(found[2]) + 1), text
        )
    return json.loads(text)


def names_for(program):
    """Returns the module of ours that a program speaks to."""
    return importlib.import_module("estimator_core.v1" if program.v1 else "estimator_core")


def params(names):
    names = sorted(names)
    slow = [name for name in names if name in SLOW or getattr(PROGRAMS.get(name), "slow", False)]
    return in_circles(names, first=FIRST.intersection(names), slow=slow)


PROGRAMS_HERE = [name for name in PROGRAMS if HAS_LEGACY_KERAS or not PROGRAMS[name].legacy_keras]


@pytest.fixture(scope="module", params=params(PROGRAMS_HERE))
def run(request, tmp_path_factory):
    """The observation of the reference, and ours from the same initial variables."""
    skip_in_tensorflow_1(request.param)
    program = PROGRAMS[request.param]
    expected = expected_of(request.param)
    model_dir = str(tmp_path_factory.mktemp(request.param))
    observe.write_checkpoint(model_dir, expected["initial_variables"])
    e = names_for(program)
    estimator = program.make(e, config=e.RunConfig(model_dir=model_dir, save_summary_steps=1))
    return expected, observe.observe(e, estimator, program), estimator


@pytest.mark.more
@pytest.mark.skipif(HAS_LEGACY_KERAS, reason="its programs run directly")
def test_programs_that_need_legacy_keras():
    """TensorFlow chooses its Keras when it is imported, so they have a process of their own."""
    pytest.importorskip("tf_keras")
    names = " or ".join(name for name in PROGRAMS if PROGRAMS[name].legacy_keras)
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", names],
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1"},
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr


def assert_close(kind, seen, expected, where=""):
    """Checks numbers to the tolerance of their kind, far above the bands in bands.json."""
    tolerance = TOLERANCES[kind]
    assert seen == pytest.approx(expected, rel=tolerance.relative, abs=tolerance.absolute), where


def test_every_program_has_expectations():
    assert {path.stem for path in EXPECTED.glob("*.json")} == {*PROGRAMS, *SCENARIOS}


def test_losses_step_by_step(run):
    expected, seen, _ = run
    assert len(expected["losses"]) == STEPS
    assert_close("losses", seen["losses"], expected["losses"])


def test_metric_keys_and_values(run):
    expected, seen, _ = run
    assert set(seen["metrics"]) == set(expected["metrics"])
    for key, value in expected["metrics"].items():
        assert_close("metrics", seen["metrics"][key], value, key)


def test_predictions_are_those_of_the_reference(run):
    expected, seen, _ = run
    assert len(expected["predictions"]) == 3
    for wanted, got in zip(expected["predictions"], seen["predictions"], strict=True):
        assert set(got) == set(wanted)
        for key, values in wanted.items():
            if isinstance(values[0], str):
                assert got[key] == values, key
            else:
                assert_close("predictions", got[key], values, key)


def test_variable_names_shapes_and_dtypes(run):
    expected, _, estimator = run
    seen = observe.variables_of(estimator.latest_checkpoint())
    wanted = expected["initial_variables"]
    assert set(seen) == set(wanted)
    for name, variable in wanted.items():
        assert seen[name]["shape"] == variable["shape"], name
        assert seen[name]["dtype"] == variable["dtype"], name


def test_trained_variables_and_slots(run):
    expected, seen, _ = run
    for name, norm in expected["final_norms"].items():
        assert_close("final_norms", seen["final_norms"][name], norm, name)


def test_signatures_are_those_of_the_reference(run):
    expected, seen, _ = run
    assert seen["signatures"] == expected["signatures"]


def test_summary_tags_are_those_of_the_reference(run):
    expected, seen, _ = run
    assert seen["tags"] == expected["tags"]


@pytest.mark.parametrize("name", params(SCENARIOS))
def test_a_scenario_shows_the_same_as_the_reference(name, tmp_path):
    skip_in_tensorflow_1(name)
    seen = SCENARIOS[name].run(names_for(SCENARIOS[name]), str(tmp_path / "model"))
    assert_same(seen, expected_of(name), name)


def assert_same(seen, expected, where):
    """Checks numbers with a fraction to their tolerance, and all else exactly; `where` is the path so far."""
    if isinstance(expected, dict):
        assert isinstance(seen, dict), where
        assert set(seen) == set(expected), where
        for key, value in expected.items():
            assert_same(seen[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(seen, list | tuple), where
        if not any(isinstance(value, float | dict | list) for value in expected):
            assert list(seen) == expected, where
        assert len(seen) == len(expected), where
        for index, value in enumerate(expected):
            assert_same(seen[index], value, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert_close("numbers", seen, expected, where)
    else:
        assert seen == expected, where
