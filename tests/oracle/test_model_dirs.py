"""Model directories that tf.estimator 2.15 wrote go on here as they went on there."""

import json
import pathlib
import shutil

import pytest

from tests.oracle import observe
from tests.oracle.programs import MODEL_DIRS, PROGRAMS
from tests.oracle.test_oracle import assert_close, names_for, skip_in_tensorflow_1

HERE = pathlib.Path(__file__).parent / "model_dirs"


@pytest.mark.more
@pytest.mark.parametrize("name", MODEL_DIRS)
def test_model_dir_of_the_reference_goes_on(name, tmp_path):
    skip_in_tensorflow_1(name)
    program = PROGRAMS[name]
    e = names_for(program)
    expected = json.loads((HERE / name / "expected.json").read_text())
    model_dir = shutil.copytree(HERE / name, tmp_path / name)
    estimator = program.make(e, config=e.RunConfig(model_dir=str(model_dir), save_summary_steps=1))

    metrics = estimator.evaluate(program.inputs(repeat=1))
    assert metrics["global_step"] == 30
    assert set(metrics) == set(expected["metrics"])
    for key, value in expected["metrics"].items():
        assert_close("metrics", metrics[key], value, key)

    estimator.train(program.inputs(), steps=20)
    losses = observe.losses_of(str(model_dir))
    assert len(losses) == 20
    assert_close("losses", losses, expected["losses"])
    assert estimator.get_variable_value("global_step") == expected["global_step"] == 50


def test_every_model_dir_is_tested():
    assert {path.name for path in HERE.iterdir()} == set(MODEL_DIRS)
