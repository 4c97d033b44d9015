"""The loops of training and evaluation, through an Estimator."""

import os

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import AfterEachRun, Calls, batch_of, saved_steps, scalars_of
from tests.oracle import observe


def test_train_writes_the_loss_for_tensorboard(make_estimator, input_fn):
    estimator = make_estimator(save_summary_steps=1).train(input_fn, steps=2)
    # Loss before each step: (0 - 2)^2 and (1 - 2)^2.
    assert scalars_of(estimator.model_dir)["loss"] == {1: 4.0, 2: 1.0}


def test_train_calls_hooks_and_saving_listeners(make_estimator, input_fn):
    calls, hook = [], Calls()

    class Listener(tf1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            calls.append(global_step_value)

    estimator = make_estimator(save_checkpoints_steps=2)
    estimator.train(input_fn, steps=4, hooks=[hook], saving_listeners=[Listener()])
    assert (calls, hook.calls) == ([0, 2, 4], 4)


def test_listeners_stay_on_a_saver_hook_of_ones_own(make_estimator, input_fn):
    calls = []

    class Listener(tf1.train.CheckpointSaverListener):
        def __init__(self, name):
            self.name = name

        def end(self, session, global_step_value):
            calls.append((self.name, global_step_value))

    estimator = make_estimator()
    own = Listener("own")
    hook = est.CheckpointSaverHook(estimator.model_dir, save_steps=2, listeners=[own])
    estimator.train(input_fn, steps=2, hooks=[hook], saving_listeners=[Listener("first"), own])
    estimator.train(input_fn, steps=2, hooks=[hook], saving_listeners=[Listener("second")])
    assert calls == [("own", 2), ("first", 2), ("own", 4), ("first", 4), ("second", 4)]


def test_saving_listeners_without_checkpoints_are_refused(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=None, save_checkpoints_secs=None)
    with pytest.raises(ValueError, match="save_checkpoints_steps"):
        estimator.train(input_fn, steps=1, saving_listeners=[tf1.train.CheckpointSaverListener()])


def test_a_nan_loss_stops_training_and_keeps_the_last_good_checkpoint(make_estimator):
    labels = [[2.0], [2.0], [float("nan")], [2.0]]
    estimator = make_estimator(save_checkpoints_steps=1)
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        estimator.train(lambda: tf.data.Dataset.from_tensor_slices(({"x": [[1.0]] * 4}, labels)))
    assert estimator.get_variable_value("global_step") == 2
    assert estimator.get_variable_value("weight") == pytest.approx(1.5)


def test_evaluate_stops_after_steps_and_writes_summaries(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    assert estimator.evaluate(eval_input_fn, steps=1, name="first")["loss"] == pytest.approx(2.5)
    directory = estimator.eval_dir("first")
    assert directory == os.path.join(estimator.model_dir, "eval_first")
    assert scalars_of(directory)["loss"] == {1: 2.5}
    paths = [
        value.tensor.string_val[0].decode()
        for event in observe.events_of(directory)
        for value in event.summary.value
        if value.tag == "checkpoint_path"
    ]
    assert paths == [estimator.latest_checkpoint()]


def batches(count):
    """Returns an input_fn of `count` batches of one example."""
    return batch_of({"x": [1.0]}, [0.0], repeat=count)


def test_evaluate_on_an_empty_input_returns_where_metrics_begin(make_estimator, input_fn, caplog):
    estimator = make_estimator().train(input_fn, steps=1)
    assert estimator.evaluate(batches(0)) == {"loss": 0.0, "mae": 0.0, "global_step": 1}
    assert "Evaluation made no steps: input_fn gave no batch" in caplog.text


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("steps", "in_input", "logged"),
    [
        (3, 9, [1, 2, 3]),
        (19, 30, list(range(1, 20))),
        (25, 30, [*range(2, 25, 2), 25]),  # every 25 // 10, and the last one
        (40, 60, list(range(4, 41, 4))),
        (25, 7, [2, 4, 6]),  # the input ends first
        (None, 4, []),
    ],
)
def test_evaluation_logs_about_ten_times(make_estimator, caplog, steps, in_input, logged):
    estimator = make_estimator()
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator.evaluate(batches(in_input), steps=steps)
    assert [line for line in caplog.messages if line.startswith("Evaluation [")] == [
        f"Evaluation [{done}/{steps}]" for done in logged
    ]


@pytest.mark.parametrize(("steps", "evaluated"), [(3, 3), (9, 5), (None, 5)])
def test_evaluation_stops_after_its_steps_or_the_input(make_estimator, steps, evaluated):
    hook = Calls()
    make_estimator().evaluate(batches(5), steps=steps, hooks=[hook])
    assert hook.calls == evaluated


@pytest.mark.parametrize("every", [2, 3])
def test_training_without_a_step_is_told(make_estimator, caplog, every):
    estimator = make_estimator(save_checkpoints_steps=every, log_step_count_steps=every)
    estimator.train(batches(0))
    assert "made no steps" in caplog.text
    assert estimator.get_variable_value("global_step") == 0


def test_checkpoints_may_leave_the_graph_out(make_estimator, input_fn, tmp_path):
    make_estimator(checkpoint_save_graph_def=False).train(input_fn, steps=3)
    names = [path.name for path in (tmp_path / "model").iterdir()]
    assert "model.ckpt-3.index" in names
    assert "graph.pbtxt" not in names


def test_hooks_see_a_step_in_the_order_of_tf_estimator(make_estimator, input_fn):
    """The checkpoint, its listeners, the caller's hooks, and model_fn's own."""
    calls = []

    class Listener(est.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            calls.append(f"listener {global_step_value}")

    def noting(name):
        return AfterEachRun(lambda _: calls.append(name))

    def with_hooks(features, labels, mode, config):
        hooks = {"training_hooks": [noting("training")], "training_chief_hooks": [noting("chief")]}
        return make_estimator().model_fn(features, labels, mode, config)._replace(**hooks)

    estimator = est.Estimator(with_hooks, config=make_estimator(save_checkpoints_steps=2).config)
    estimator.train(input_fn, steps=3, hooks=[noting("caller")], saving_listeners=[Listener()])
    each = ["chief", "caller", "training"]
    assert calls == ["listener 0", *each, "listener 2", *each, *each, "listener 3"]


def test_as_many_checkpoints_are_kept_as_the_config_says(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=2, keep_checkpoint_max=3).train(input_fn, steps=11)
    assert saved_steps(estimator.model_dir) == [8, 10, 11]
