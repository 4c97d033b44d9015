"""TensorFlow's own hooks under the names of tf.estimator, in the training of the model of conftest."""

import glob
import itertools
import os

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.summaries import read_evaluations

tf1 = tf.compat.v1


class Watch(est.SessionRunHook):
    """Fetches the weight before each step, and keeps its arguments."""

    def __init__(self):
        self.weights = []
        self.contexts = []
        self.values = []

    def before_run(self, run_context):
        self.contexts.append(run_context)
        graph = run_context.session.graph
        weight = graph.get_tensor_by_name("weight/Read/ReadVariableOp:0")
        return est.SessionRunArgs({"step": tf1.train.get_global_step(), "weight": weight})

    def after_run(self, run_context, run_values):
        self.values.append(run_values)


def test_session_run_args_context_and_values(make_estimator, input_fn):
    watch = Watch()
    make_estimator().train(input_fn, hooks=[watch], steps=2)
    assert all(isinstance(context, est.SessionRunContext) for context in watch.contexts)
    assert all(isinstance(values, est.SessionRunValues) for values in watch.values)
    assert len(watch.values) == 2
    assert set(watch.values[0].results) == {"step", "weight"}
    assert not watch.contexts[0].stop_requested
    assert len(watch.contexts[0].original_args.fetches) == 2  # the train op and the loss


def test_stop_at_step_hook(make_estimator, input_fn):
    estimator = make_estimator()
    estimator.train(input_fn, hooks=[est.StopAtStepHook(num_steps=3)])
    estimator.train(input_fn, hooks=[est.StopAtStepHook(last_step=5)])
    assert estimator.get_variable_value("global_step") == 5


def test_global_step_waiter_hook(make_estimator, input_fn):
    """The step is there already when the second training begins, so nothing waits."""
    estimator = make_estimator()
    estimator.train(input_fn, steps=2)
    estimator.train(input_fn, hooks=[est.GlobalStepWaiterHook(2)], steps=1)
    assert estimator.get_variable_value("global_step") == 3


def test_final_ops_hook(make_estimator, eval_input_fn, input_fn):
    class Final(est.SessionRunHook):
        """Makes the FinalOpsHook once there is a graph to read from."""

        def begin(self):
            weight = tf1.get_default_graph().get_tensor_by_name("weight/Read/ReadVariableOp:0")
            self.hook = est.FinalOpsHook({"doubled": 2.0 * weight})
            self.hook.begin()

        def end(self, session):
            self.hook.end(session)

    estimator = make_estimator()
    estimator.train(input_fn, steps=1)  # weight = 1
    final = Final()
    estimator.evaluate(eval_input_fn, hooks=[final])
    assert final.hook.final_ops_values == {"doubled": 2.0}


def test_feed_fn_hook(make_estimator):
    """x and the labels are placeholders: with x = 1 and label 2, the first step makes weight 1."""
    fed = {}

    def placeholders():
        fed["x"] = tf1.placeholder(tf.float32, [None])
        fed["label"] = tf1.placeholder(tf.float32, [None])
        return {"x": fed["x"]}, fed["label"]

    feed = est.FeedFnHook(lambda: {fed["x"]: [1.0], fed["label"]: [2.0]})
    estimator = make_estimator()
    estimator.train(placeholders, hooks=[feed], steps=1)
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
    class Log(est.SessionRunHook):
        def begin(self):
            weight = tf1.get_default_graph().get_tensor_by_name("weight/Read/ReadVariableOp:0")
            tf.identity(3.0 * tf.ones_like(weight), name="three")

    hooks = [Log(), est.LoggingTensorHook(["three"], every_n_iter=2)]
    with caplog.at_level("INFO", logger="tensorflow"):
        make_estimator(log_step_count_steps=None).train(input_fn, hooks=hooks, steps=6)
    lines = [record.getMessage() for record in caplog.records]
    lines = [line for line in lines if line.startswith("three")]
    assert [line.split(" (")[0] for line in lines] == ["three = 3.0"] * 3  # steps 1, 3 and 5


@pytest.mark.parametrize("fail", [True, False])
def test_nan_tensor_hook(make_estimator, input_fn, fail):
    class Nan(est.SessionRunHook):
        def begin(self):
            self.hook = est.NanTensorHook(tf.constant(float("nan")), fail_on_nan_loss=fail)

        def before_run(self, run_context):
            return self.hook.before_run(run_context)

        def after_run(self, run_context, run_values):
            self.hook.after_run(run_context, run_values)

    estimator = make_estimator()
    if fail:
        with pytest.raises(est.NanLossDuringTrainingError):
            estimator.train(input_fn, hooks=[Nan()], steps=5)
    else:
        estimator.train(input_fn, hooks=[Nan()], steps=5)
        assert estimator.get_variable_value("global_step") == 1  # it asked to stop


def test_second_or_step_timer():
    timer = est.SecondOrStepTimer(every_steps=10)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    assert not timer.should_trigger_for_step(10)
    assert timer.should_trigger_for_step(11)
