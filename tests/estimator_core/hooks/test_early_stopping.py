import pytest
import tensorflow as tf

from estimator_core import summaries
from estimator_core.hooks import early_stopping


def _write(estimator, values, metric="accuracy"):
    for step, value in values.items():
        summaries.write_evaluation(estimator.eval_dir(), {metric: value}, step)


def _steps_trained(estimator, input_fn, hook):
    estimator.train(input_fn, steps=10, hooks=[hook])
    return estimator.get_variable_value("global_step")


def test_training_ends_when_the_function_says_so(make_estimator, input_fn):
    answers = iter([False, False, True])
    estimator = make_estimator()
    hook = early_stopping.make_early_stopping_hook(
        estimator, lambda: next(answers), run_every_secs=None, run_every_steps=2
    )
    # Asked at the first step that is seen and every second one after it. A step sees the global step of
    # before or after its own update: 0, 2 and 4 may be seen as early as in the steps 1, 2 and 4, and
    # 1, 3 and 5 as late as in the steps 1, 4 and 6.
    assert _steps_trained(estimator, input_fn, hook) in (4, 5, 6)


def test_a_stopped_model_can_be_trained_further(make_estimator, input_fn):
    estimator = make_estimator()

    def hook(answer):
        return early_stopping.make_early_stopping_hook(
            estimator, lambda: answer, run_every_secs=None, run_every_steps=1
        )

    assert _steps_trained(estimator, input_fn, hook(True)) == 1
    assert bool(estimator.get_variable_value("signal_early_stopping/STOP"))
    assert _steps_trained(estimator, input_fn, hook(False)) == 11


_CASES = [
    # hook, its argument, evaluations by step, whether training stops at once
    ("stop_if_higher_hook", {"threshold": 0.75}, {10: 0.7, 20: 0.76}, True),
    ("stop_if_higher_hook", {"threshold": 0.75}, {10: 0.7, 20: 0.75}, False),
    ("stop_if_higher_hook", {"threshold": 0.8, "min_steps": 15}, {10: 0.9, 20: 0.7}, False),
    ("stop_if_lower_hook", {"threshold": 0.25}, {10: 0.24}, True),
    ("stop_if_lower_hook", {"threshold": 0.25}, {10: 0.25}, False),
    (
        "stop_if_no_increase_hook",
        {"max_steps_without_increase": 20},
        {10: 0.5, 20: 0.5, 30: 0.5},
        True,
    ),
    (
        "stop_if_no_increase_hook",
        {"max_steps_without_increase": 20},
        {10: 0.5, 20: 0.6, 30: 0.6},
        False,
    ),
    (
        "stop_if_no_decrease_hook",
        {"max_steps_without_decrease": 20},
        {10: 0.5, 20: 0.6, 30: 0.7},
        True,
    ),
    (
        "stop_if_no_decrease_hook",
        {"max_steps_without_decrease": 20},
        {10: 0.5, 20: 0.4, 30: 0.4},
        False,
    ),
    ("stop_if_no_decrease_hook", {"max_steps_without_decrease": 20}, {}, False),
]


@pytest.mark.parametrize(("name", "arguments", "evaluations", "stops"), _CASES)
def test_hooks_read_the_evaluations(make_estimator, input_fn, name, arguments, evaluations, stops):
    estimator = make_estimator()
    _write(estimator, evaluations)
    hook = getattr(early_stopping, name)(
        estimator, "accuracy", **arguments, run_every_secs=None, run_every_steps=1
    )
    assert _steps_trained(estimator, input_fn, hook) == (1 if stops else 10)


def test_another_directory_can_hold_the_evaluations(make_estimator, input_fn, tmp_path):
    estimator = make_estimator()
    summaries.write_evaluation(str(tmp_path / "other"), {"accuracy": 1.0}, 5)
    hook = early_stopping.stop_if_higher_hook(
        estimator, "accuracy", 0.5, str(tmp_path / "other"), run_every_secs=None, run_every_steps=1
    )
    assert _steps_trained(estimator, input_fn, hook) == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"run_every_secs": 1, "run_every_steps": 1}, ValueError),
        ({"run_every_secs": None}, ValueError),
        ({"should_stop_fn": True}, TypeError),
        ({"estimator": 1}, TypeError),
    ],
)
def test_bad_arguments_are_refused(make_estimator, arguments, error):
    (name,) = [name for name in arguments if name != "run_every_steps"]
    with pytest.raises(error, match=name):
        early_stopping.make_early_stopping_hook(
            **{"estimator": make_estimator(), "should_stop_fn": bool, **arguments}
        )


def test_summaries_that_are_no_scalars_are_left_out(tmp_path):
    summaries.write_evaluation(str(tmp_path), {"a": 1.5, "b": tf.ones([2]).numpy()}, 3)
    summaries.write_checkpoint_path(str(tmp_path), "model.ckpt-3", 3)
    assert summaries.read_evaluations(str(tmp_path)) == {3: {"a": 1.5}}
    assert summaries.read_evaluations(str(tmp_path / "none")) == {}
