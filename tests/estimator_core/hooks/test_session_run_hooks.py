"""TensorFlow's own hooks under the names of tf.estimator, in the training of the model of conftest."""

import glob
import itertools
import os

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.summaries import read_evaluations


class Watch(est.SessionRunHook):
    """Keeps the arguments of the calls around each step."""

    def __init__(self):
        self.contexts, self.values = [], []

    def before_run(self, run_context):
        self.contexts.append(run_context)
        return est.SessionRunArgs({"step": tf1.train.get_global_step(), "weight": weight_of_the_graph()})

    def after_run(self, run_context, run_values):
        self.values.append(run_values)


def weight_of_the_graph():
    return tf1.get_default_graph().get_tensor_by_name("weight/Read/ReadVariableOp:0")


def test_session_run_args_context_and_values(make_estimator, input_fn):
    watch = Watch()
    make_estimator().train(input_fn, hooks=[watch], steps=2)
    assert all(isinstance(context, est.SessionRunContext) for context in watch.contexts)
    assert [type(values) for values in watch.values] == [est.SessionRunValues] * 2
    assert set(watch.values[0].results) == {"step", "weight"}
    assert not watch.contexts[0].stop_requested
    assert len(watch.contexts[0].original_args.fetches) == 2  # the train op and the loss


def test_stop_at_step_hook(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, hooks=[est.StopAtStepHook(num_steps=3)])
    estimator.train(input_fn, hooks=[est.StopAtStepHook(last_step=5)])
    assert estimator.get_variable_value("global_step") == 5


def test_global_step_waiter_hook(make_estimator, input_fn):
    """The step is there already when the second training begins, so nothing waits."""
    estimator = make_estimator().train(input_fn, steps=2)
    estimator.train(input_fn, hooks=[est.GlobalStepWaiterHook(2)], steps=1)
    assert estimator.get_variable_value("global_step") == 3


class MadeInTheGraph(est.SessionRunHook):
    """Calls another hook, which it makes once there is a graph."""

    def __init__(self, make):
        self.make = make

    def begin(self):
        self.hook = self.make()
        self.hook.begin()

    def before_run(self, run_context):
        return self.hook.before_run(run_context)

    def after_run(self, run_context, run_values):
        self.hook.after_run(run_context, run_values)

    def end(self, session):
        self.hook.end(session)


def test_final_ops_hook(make_estimator, eval_input_fn, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)  # weight = 1
    final = MadeInTheGraph(lambda: est.FinalOpsHook({"doubled": 2.0 * weight_of_the_graph()}))
    estimator.evaluate(eval_input_fn, hooks=[final])
    assert final.hook.final_ops_values == {"doubled": 2.0}


def test_feed_fn_hook(make_estimator):
    """x and the labels are placeholders: with x = 1 and label 2, the first step makes weight 1."""

    def placeholders():
        x, label = (tf1.placeholder(tf.float32, [None], name) for name in ("x", "label"))
        return {"x": x}, label

    feed = est.FeedFnHook(lambda: {"x:0": [1.0], "label:0": [2.0]})
    estimator = make_estimator().train(placeholders, hooks=[feed], steps=1)
    assert estimator.get_variable_value("weight") == pytest.approx(1.0)


def test_checkpoint_saver_hook_and_listener(make_estimator, input_fn):
    class Listener(est.CheckpointSaverListener):
        steps = []

        def after_save(self, session, global_step_value):
            self.steps.append(int(global_step_value))

    estimator = make_estimator()
    saver = est.CheckpointSaverHook(estimator.model_dir, save_steps=3, listeners=[Listener()])
    estimator.train(input_fn, hooks=[saver], steps=7)
    assert Listener.steps == [0, 3, 6, 7]


def test_summary_saver_step_counter_and_profiler_hooks(make_estimator, input_fn, tmp_path):
    out = str(tmp_path / "out")
    model_fn = make_estimator().model_fn

    def model_fn_with_hooks(features, labels, mode, config):
        seven = tf1.summary.scalar("seven", 7.0)
        hooks = [
            est.SummarySaverHook(save_steps=4, output_dir=out, summary_op=seven),
            est.StepCounterHook(every_n_steps=3, output_dir=out),
            est.ProfilerHook(save_steps=4, output_dir=out),
        ]
        return model_fn(features, labels, mode, config)._replace(training_hooks=hooks)

    est.Estimator(model_fn_with_hooks, model_dir=str(tmp_path)).train(input_fn, steps=9)
    events = read_evaluations(out)
    # The step of a run may be counted as the next one: an action can come one step early.
    summaries = [step for step, values in events.items() if values.get("seven") == 7.0]
    assert summaries[0] == 1
    assert {later - step for step, later in itertools.pairwise(summaries)} <= {3, 4}
    rates = {step: values.get("global_step/sec") for step, values in events.items()}
    rates = {step: rate for step, rate in rates.items() if rate}
    assert list(rates) == [4, 7]  # the first step starts the clock
    assert min(rates.values()) > 0
    timelines = sorted(glob.glob(os.path.join(out, "timeline-*.json")))
    steps = [int(path.rsplit("-")[-1].removesuffix(".json")) for path in timelines]
    assert 1 not in steps
    assert len(steps) == 2
    assert steps[1] - steps[0] in (3, 4)


def test_logging_tensor_hook(make_estimator, input_fn, caplog):
    def three():
        tf.identity(3.0 * tf.ones_like(weight_of_the_graph()), name="three")
        return est.SessionRunHook()

    hooks = [MadeInTheGraph(three), est.LoggingTensorHook(["three"], every_n_iter=2)]
    with caplog.at_level("INFO", logger="tensorflow"):
        make_estimator(log_step_count_steps=None).train(input_fn, hooks=hooks, steps=6)
    lines = [line.split(" (")[0] for line in caplog.messages if line.startswith("three")]
    assert lines == ["three = 3.0"] * 3  # steps 1, 3 and 5


@pytest.mark.parametrize("fail", [True, False])
def test_nan_tensor_hook(make_estimator, input_fn, fail):
    hook = MadeInTheGraph(lambda: est.NanTensorHook(tf.constant(float("nan")), fail_on_nan_loss=fail))
    estimator = make_estimator()
    if fail:
        with pytest.raises(est.NanLossDuringTrainingError):
            estimator.train(input_fn, hooks=[hook], steps=5)
    else:
        estimator.train(input_fn, hooks=[hook], steps=5)
        assert estimator.get_variable_value("global_step") == 1  # it asked to stop


def test_second_or_step_timer():
    timer = est.SecondOrStepTimer(every_steps=10)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    assert not timer.should_trigger_for_step(10)
    assert timer.should_trigger_for_step(11)
