"""A NaN loss ends training at its own step, wherever in a session call that step is."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.circles import in_circles
from tests.contract.nan_losses import (
    OPTIMIZERS,
    WAYS,
    ManyTrainings,
    NanInput,
    additive_model_fn,
    make_estimator,
)
from tests.estimator_core.programs import Fetching

COUNTS = ("auto", 1, 2, 4, 50)
STEPS = (*range(1, 61), *range(101, 141))
# With two and four steps a call, many of these are the last before a step with hooks. So are 2, 4, 8 and 12
# with "auto", whose first calls are trials of one step or two.
SOME_STEPS = (*range(1, 13), 51, 52, 60, 101, 102, 104)


def steps_of_errors(way, optimizer, count, steps, model_dir):
    """Returns the step of the NaN -> the step that the error names."""
    trainings = ManyTrainings(way, make_estimator(way, optimizer, count, model_dir))
    try:
        errors = {step: trainings.error_of(step) for step in steps}
        assert trainings.error_of(None) is None
    finally:
        trainings.close()
    return {step: error and error.global_step for step, error in errors.items()}


def can_be(way, count):
    return not (way == "compiled" and count == 1)  # which RunConfig refuses


# Ftrl makes weights that are NaN 0: the loss after the NaN is a number again.
@pytest.mark.parametrize("count", in_circles(COUNTS, first=[4]))
@pytest.mark.parametrize("way", WAYS)
def test_an_error_names_the_first_step_whose_loss_is_nan(way, count, tmp_path):
    if can_be(way, count):
        found = steps_of_errors(way, "ftrl", count, SOME_STEPS, tmp_path)
        assert found == {step: step for step in SOME_STEPS}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("way", WAYS)
def test_whatever_the_optimizer_and_the_step(way, optimizer, tmp_path):
    for count in COUNTS:
        if can_be(way, count):
            found = steps_of_errors(way, optimizer, count, STEPS, tmp_path / str(count))
            assert found == {step: step for step in STEPS}, count


class Seen(Fetching):
    """The losses of the steps that it is called at, every fourth one among them."""

    def steps_until_due(self, global_step):
        return 4 - global_step % 4

    def skip_steps(self, steps):
        pass


class Saved(est.CheckpointSaverListener):
    """The global steps of the checkpoints."""

    def __init__(self):
        self.steps = []

    def after_save(self, session, global_step_value):
        self.steps.append(int(global_step_value))


# A checkpoint is due at step 8, and no hook at step 7.
@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", [7, 8])
def test_no_checkpoint_is_saved_of_a_step_whose_loss_is_nan(way, step, tmp_path):
    estimator = make_estimator(way, "ftrl", 4, tmp_path, save_checkpoints_steps=4)
    nan_input, seen, saved = NanInput(way), Seen(), Saved()
    nan_input.step = step
    with pytest.raises(est.NanLossDuringTrainingError, match=f"at global step {step}\\."):
        estimator.train(nan_input, [seen], steps=300, saving_listeners=[saved])
    assert saved.steps[-1] == estimator.get_variable_value("global_step") < step
    assert 0.5 <= estimator.get_variable_value("weight") < 1.0  # on its way to 1, and not made 0
    assert not np.isnan(seen.values[:-1]).any()
    assert np.isnan(seen.values[-1]) == (step == 8)


# With four steps a call, step 8 is one with hooks and step 7 is not.
@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
def test_the_first_infinite_loss_is_reported_and_training_continues(way, tmp_path, caplog):
    for step, value in ((2, np.inf), (7, -np.inf), (8, np.inf)):
        estimator = make_estimator(way, "sgd", 4, tmp_path / str(step), model_fn=additive_model_fn)
        infinite_input = NanInput(way, value)
        infinite_input.step = step
        caplog.clear()
        estimator.train(infinite_input, [Seen()], steps=20)
        (message,) = [text for text in caplog.messages if "Infinite loss" in text]
        assert f"at global step {step}. " in message
        assert estimator.get_variable_value("global_step") == 20
        # Two replicas add up their gradients of half the loss each.
        assert estimator.get_variable_value("weight") == 100 - 20 / 8


@pytest.mark.parametrize("way", ["one_device", "compiled"])
def test_many_infinite_losses_are_reported_once(way, tmp_path, caplog):
    def input_fn():
        x = tf.data.Dataset.range(1, 10**6).map(lambda number: tf.where(number < 3, 1.0, np.inf))
        return x.batch(1).map(lambda x: ({"x": x}, x))

    estimator = make_estimator(way, "sgd", "auto", tmp_path, model_fn=additive_model_fn)
    estimator.train(input_fn, steps=301)  # enough for a loop in the graph
    (message,) = [text for text in caplog.messages if "Infinite loss" in text]
    assert "at global step 3. " in message
    assert estimator.get_variable_value("weight") == 100 - 301 / 8


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", [2, 4, 12])
def test_the_default_settings_of_a_linear_model(step, tmp_path):
    x = np.ones([400 * 16, 1], np.float32)
    x[(step - 1) * 16 + 3] = np.nan
    input_fn = est.inputs.numpy_input_fn({"x": x}, x[:, 0] > 0, 16, shuffle=False)
    estimator = est.LinearClassifier([tf.feature_column.numeric_column("x")], str(tmp_path))
    with pytest.raises(est.NanLossDuringTrainingError, match=f"at global step {step}\\."):
        estimator.train(input_fn, steps=400)
    assert estimator.get_variable_value("global_step") == 0
