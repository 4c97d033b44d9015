import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import summaries
from estimator_core.hooks import early_stopping
from tests.estimator_core.programs import AfterEachRun


def _write(estimator, values, metric="accuracy"):
    for step, value in values.items():
        summaries.write_evaluation(estimator.eval_dir(), {metric: value}, step)


def _steps_trained(estimator, input_fn, hook):
    estimator.train(input_fn, steps=10, hooks=[hook])
    return estimator.get_variable_value("global_step")


def _asking(estimator, should_stop_fn, every_steps):
    return early_stopping.make_early_stopping_hook(
        estimator, should_stop_fn, run_every_secs=None, run_every_steps=every_steps
    )


def test_training_ends_when_the_function_says_so(make_estimator, input_fn):
    answers = iter([False, False, True])
    estimator = make_estimator()
    hook = _asking(estimator, lambda: next(answers), 2)
    # Asked at the first step that is seen and every second one after it. A step sees the global step of
    # before or after its own update: 0, 2 and 4 may be seen as early as in the steps 1, 2 and 4, and
    # 1, 3 and 5 as late as in the steps 1, 4 and 6.
    assert _steps_trained(estimator, input_fn, hook) in (4, 5, 6)


def test_a_stopped_model_can_be_trained_further(make_estimator, input_fn):
    estimator = make_estimator()
    assert _steps_trained(estimator, input_fn, _asking(estimator, lambda: True, 1)) == 1
    assert bool(estimator.get_variable_value("signal_early_stopping/STOP"))
    assert _steps_trained(estimator, input_fn, _asking(estimator, lambda: False, 1)) == 11


@pytest.mark.more
@pytest.mark.parametrize("devices", [1, 2])
def test_early_stopping_can_be_added_to_a_trained_model(make_estimator, input_fn, caplog, devices):
    config = {}
    if devices == 2:
        config["train_distribute"] = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    estimator = make_estimator(**config).train(input_fn, steps=2)
    with caplog.at_level("WARNING", logger="tensorflow"):
        assert _steps_trained(estimator, input_fn, _asking(estimator, lambda: False, 2)) == 12
    # The other variables are restored: after n steps, the weight is 2 - 2 / 2^n.
    assert estimator.get_variable_value("weight") == 2 - 2 / 2**12
    (message,) = [text for text in caplog.messages if "initial values" in text]
    assert "model.ckpt-2. They have their initial values: signal_early_stopping/STOP" in message
    caplog.clear()
    # The flag is in the checkpoint now.
    assert _steps_trained(estimator, input_fn, _asking(estimator, lambda: False, 2)) == 22
    assert "initial values" not in caplog.text


_CASES = [
    # hook, its limit, min_steps, evaluations by step, whether training stops at once
    ("higher", 0.75, 0, {10: 0.7, 20: 0.76}, True),
    ("higher", 0.75, 0, {10: 0.7, 20: 0.75}, False),
    ("higher", 0.8, 15, {10: 0.9, 20: 0.7}, False),
    ("higher", 0.8, 19, {10: 0.9, 20: 0.9}, True),
    ("higher", 0.8, 20, {10: 0.7, 20: 0.9}, True),
    ("higher", 0.8, 21, {10: 0.9, 20: 0.9}, False),
    ("lower", 0.25, 0, {10: 0.24}, True),
    ("lower", 0.25, 10, {10: 0.24}, True),
    ("lower", 0.25, 11, {10: 0.24}, False),
    ("lower", 0.25, 0, {10: 0.25}, False),
    ("no_increase", 20, 0, {10: 0.5, 20: 0.5, 30: 0.5}, True),
    ("no_increase", 20, 0, {10: 0.5, 20: 0.6, 30: 0.6}, False),
    # The best, at 10, is 19 steps before 29 and 20 before 30, whatever lies in between.
    ("no_increase", 20, 0, {10: 0.5, 29: 0.1}, False),
    ("no_increase", 20, 0, {10: 0.5, 20: 0.1, 25: 0.4, 30: 0.3}, True),
    # It stays a reason to stop when better values come after it.
    ("no_increase", 20, 0, {10: 0.5, 30: 0.4, 40: 0.9}, True),
    # Evaluations before min_steps are no best values.
    ("no_increase", 20, 10, {10: 0.5, 30: 0.4}, True),
    ("no_increase", 20, 11, {10: 0.5, 20: 0.3, 30: 0.3}, False),
    ("no_decrease", 20, 10, {10: 0.5, 30: 0.6}, True),
    ("no_decrease", 20, 11, {10: 0.5, 20: 0.6, 30: 0.6}, False),
    ("no_decrease", 20, 0, {10: 0.5, 20: 0.6, 30: 0.7}, True),
    ("no_decrease", 20, 0, {10: 0.5, 20: 0.4, 30: 0.4}, False),
    ("no_decrease", 20, 0, {}, False),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "limit", "min_steps", "evaluations", "stops"), _CASES)
def test_hooks_read_the_evaluations(make_estimator, input_fn, name, limit, min_steps, evaluations, stops):
    estimator = make_estimator()
    _write(estimator, evaluations)
    hook = getattr(early_stopping, f"stop_if_{name}_hook")(
        estimator, "accuracy", limit, None, min_steps, run_every_secs=None, run_every_steps=20
    )
    assert _steps_trained(estimator, input_fn, hook) == (1 if stops else 10)


# Each hook, its limit, and evaluations after which it stops training.
_HOOKS = [
    ("stop_if_higher_hook", {"threshold": 0.5}, {0: 0.6}),
    ("stop_if_lower_hook", {"threshold": 0.5}, {0: 0.4}),
    ("stop_if_no_increase_hook", {"max_steps_without_increase": 5}, {0: 0.5, 5: 0.5}),
    ("stop_if_no_decrease_hook", {"max_steps_without_decrease": 5}, {0: 0.5, 5: 0.5}),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "limit"), [case[:2] for case in _HOOKS])
def test_evaluations_without_the_metric_do_not_count(make_estimator, input_fn, name, limit):
    estimator = make_estimator()
    _write(estimator, {10: 0.5, 20: 0.5}, metric="auc")
    _write(estimator, {5: 0.5})
    hook = getattr(early_stopping, name)(
        estimator, "accuracy", **limit, run_every_secs=None, run_every_steps=3
    )
    assert _steps_trained(estimator, input_fn, hook) == 10
    hook = getattr(early_stopping, name)(estimator, "acc", **limit, run_every_secs=None, run_every_steps=3)
    with pytest.raises(ValueError, match=r"they have \['accuracy', 'auc'\].*metric_name='acc'"):
        _steps_trained(estimator, input_fn, hook)


class _Run:
    """Runs a hook on steps of our choice; keeps its fetches and its requests."""

    def __init__(self, hook):
        self.stopped = False
        with tf.Graph().as_default():
            self._step = tf1.train.create_global_step()
            hook.begin()
            self.session = tf1.Session()
            self.session.run(tf1.global_variables_initializer())
        hook.after_create_session(self.session, None)
        self._hook = hook

    def request_stop(self):
        self.stopped = True

    def after(self, result):
        self._hook.before_run(self)
        values = est.SessionRunValues(results=result, options=None, run_metadata=None)
        self._hook.after_run(self, values)
        return self.stopped


def test_it_is_asked_every_so_many_steps(make_estimator):
    asked = []
    run = _Run(_asking(make_estimator(), lambda: asked.append(step), 3))
    for step in (4, 5, 6, 7, 8, 11, 12, 13, 14):
        assert not run.after(step)
    assert asked == [4, 7, 11, 14]


@pytest.mark.parametrize(("settings", "secs"), [({}, 60), ({"run_every_secs": 7}, 7)])
def test_it_is_asked_every_so_many_seconds(make_estimator, monkeypatch, settings, secs):
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    asked = []
    hook = early_stopping.make_early_stopping_hook(make_estimator(), lambda: asked.append(step), **settings)
    run = _Run(hook)
    for step, later in enumerate((0, secs - 0.5, 0.5, secs - 0.5, 1.0)):
        now[0] += later
        run.after(step)
    assert asked == [0, 2, 4]


@pytest.mark.parametrize(("name", "limit", "evaluations"), _HOOKS)
def test_by_default_all_hooks_look_once_a_minute_at_all_evaluations(
    make_estimator, monkeypatch, name, limit, evaluations
):
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    estimator = make_estimator()
    run = _Run(getattr(early_stopping, name)(estimator, "accuracy", **limit))
    assert not run.after(1)  # the first look; there is nothing yet
    _write(estimator, evaluations)
    now[0] += 59.5
    assert not run.after(2)
    now[0] += 0.5
    assert run.after(3)


@pytest.fixture
def worker(as_task, make_estimator, monkeypatch):
    as_task("worker", tasks={"chief": ["c:1"], "worker": ["w:1"]})
    estimator = make_estimator()
    monkeypatch.delenv("TF_CONFIG")
    return estimator


def test_workers_stop_when_the_chief_has_raised_the_flag(make_estimator, input_fn, worker):
    calls = []

    def as_the_chief(session):
        """Raises the flag after three steps, as the process of the chief would."""
        calls.append(1)
        if len(calls) == 3:
            flag = next(v for v in session.graph.get_collection("variables") if v.op.name.endswith("/STOP"))
            flag.load(True, session)

    estimator = make_estimator()
    hook = early_stopping.make_early_stopping_hook(worker, lambda: 1 / 0)  # only the chief asks
    estimator.train(input_fn, steps=10, hooks=[hook, AfterEachRun(as_the_chief)])
    # The flag is seen by the step after the one that raised it.
    assert estimator.get_variable_value("global_step") == 4


def test_the_flag_of_a_stopped_training_is_lowered_for_the_workers_too(make_estimator, input_fn, worker):
    estimator = make_estimator()
    of_a_worker = early_stopping.make_early_stopping_hook(worker, bool)

    def chief(answer):
        return _asking(estimator, lambda: answer, 3)

    estimator.train(input_fn, steps=10, hooks=[chief(True), of_a_worker])
    assert estimator.get_variable_value("global_step") == 1
    estimator.train(input_fn, steps=4, hooks=[chief(False), of_a_worker])
    assert estimator.get_variable_value("global_step") == 5


def test_the_flag_is_no_trainable_variable(graph, make_estimator):
    hook = early_stopping.make_early_stopping_hook(make_estimator(), bool)
    tf1.train.create_global_step()
    hook.begin()
    assert tf1.trainable_variables() == []
    names = {variable.op.name for variable in tf1.global_variables()}
    assert names == {"global_step", "signal_early_stopping/STOP"}


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
