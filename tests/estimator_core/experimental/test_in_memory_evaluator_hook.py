import os

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.summaries import read_evaluations
from tests.estimator_core.programs import batch_of, counting, zeros


def evaluations_of(estimator, name=None):
    """Returns (loss, mae) by global step, as the hook has written them."""
    return {
        step: (values["loss"], values["mae"])
        for step, values in read_evaluations(estimator.eval_dir(name)).items()
    }


def expected(step):
    """The model of conftest has w = 2 - 2 / 2^step.

    Batches x = [1, 2] and [3] with labels 0 have the losses 2.5 w^2 and 9 w^2, of mean 5.75 w^2; the
    mean absolute error of the three examples is 2 w.
    """
    w = 2.0 - 2.0 / 2.0**step
    return pytest.approx((5.75 * w * w, 2.0 * w))


def check_evaluations(estimator, steps, name=None):
    assert evaluations_of(estimator, name) == {step: expected(step) for step in steps}


def test_evaluates_at_the_start_every_n_iterations_and_at_the_end(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator()
    hook = est.experimental.InMemoryEvaluatorHook(estimator, eval_input_fn, every_n_iter=3, name="mem")
    estimator.train(input_fn, hooks=[hook], steps=8)
    check_evaluations(estimator, [0, 3, 6, 8], "mem")


@pytest.mark.more
def test_a_hook_serves_a_second_training(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator()
    hook = est.experimental.InMemoryEvaluatorHook(estimator, eval_input_fn, every_n_iter=2)
    estimator.train(input_fn, hooks=[hook], steps=2)
    estimator.train(input_fn, hooks=[hook], steps=1)
    check_evaluations(estimator, [0, 2, 3])


def test_evaluates_at_the_end_of_an_input_that_ends_within_a_loop(make_sharded):
    batches = lambda params: batch_of({"x": [2.0] * 4}, [4.0] * 4, repeat=7)()  # noqa: E731
    estimator = make_sharded(config={"iterations_per_loop": 5}, params={"rate": 0.0625})
    hook = est.experimental.InMemoryEvaluatorHook(estimator, batches, steps=2, every_n_iter=1)
    estimator.train(batches, hooks=[hook], max_steps=20)
    # Each step halves the distance to a weight of 2: the error is |2 * 2 - 2 * weight|.
    seen = read_evaluations(estimator.eval_dir())
    assert {step: values["mae"] for step, values in seen.items()} == {0: 4.0, 5: 0.125, 7: 0.03125}


def test_needs_no_checkpoints_and_writes_none(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator(save_checkpoints_secs=None)
    hook = est.experimental.InMemoryEvaluatorHook(estimator, eval_input_fn)
    estimator.train(input_fn, hooks=[hook], steps=1)
    assert evaluations_of(estimator)[1] == expected(1)
    assert estimator.latest_checkpoint() is None
    assert not [name for name in os.listdir(estimator.eval_dir()) if "ckpt" in name]


def test_steps_and_hooks(make_estimator, input_fn, eval_input_fn):
    batches = []
    counter = est.FeedFnHook(lambda: batches.append(1) or {})
    estimator = make_estimator()
    hook = est.experimental.InMemoryEvaluatorHook(estimator, eval_input_fn, steps=1, hooks=[counter])
    estimator.train(input_fn, hooks=[hook], steps=1)
    assert len(batches) == 2  # one at the start, one at the end
    # After one step w = 1, and the first batch alone has the loss 2.5.
    assert evaluations_of(estimator)[1] == pytest.approx((2.5, 1.5))


@pytest.mark.more
def test_lookup_tables_batch_normalization_and_partitions(tmp_path):
    """The hook and evaluate give the same for the variables of the last checkpoint."""
    kind = tf.feature_column.categorical_column_with_vocabulary_list("kind", ["wood", "steel"])
    columns = [tf.feature_column.numeric_column("size"), tf.feature_column.embedding_column(kind, 2)]
    settings = {"batch_norm": True, "input_layer_partitioner": tf1.fixed_size_partitioner(2)}
    estimator = est.v1.DNNClassifier([4], columns, model_dir=str(tmp_path), **settings)
    features = {"size": [1.0, -1.0, 3.0], "kind": ["steel", "wood", "glass"]}
    input_fn = batch_of(features, [1, 0, 1], repeat=4)
    hook = est.experimental.InMemoryEvaluatorHook(estimator, input_fn, name="mem")
    results = estimator.train(input_fn, hooks=[hook]).evaluate(input_fn)
    seen = read_evaluations(estimator.eval_dir("mem"))
    assert list(seen) == [0, 4]
    assert seen[0]["loss"] != pytest.approx(seen[4]["loss"])
    assert seen[4] == pytest.approx({key: results[key] for key in seen[4]}, rel=1e-6)


def test_training_on_two_devices(make_estimator, input_fn, eval_input_fn):
    """Both replicas see the batch that one would, and the gradient is their mean."""
    reduction = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"], cross_device_ops=reduction)
    estimator = make_estimator(train_distribute=strategy)
    hook = est.experimental.InMemoryEvaluatorHook(estimator, eval_input_fn, every_n_iter=2)
    estimator.train(input_fn, hooks=[hook], steps=3)
    check_evaluations(estimator, [0, 2, 3])


def check_refused(model_fn, message, tmp_path, input_fn):
    estimator = est.Estimator(model_fn, tmp_path)
    hook = est.experimental.InMemoryEvaluatorHook(estimator, input_fn, steps=1)
    with pytest.raises(ValueError, match=message):
        estimator.train(input_fn, hooks=[hook], steps=1)


def test_a_variable_of_evaluation_alone(tmp_path):
    def model_fn(features, labels, mode):
        weight = zeros("weight")
        if mode == est.ModeKeys.EVAL:
            zeros("offset")
        return counting(mode, tf.reduce_mean(tf.square(weight * features["x"] - labels)))

    message = r"that the graph of training lacks(.|\n)*\['offset'\]"
    check_refused(model_fn, message, tmp_path, batch_of({"x": [1.0]}, [2.0]))


def test_refuses_what_cannot_work(make_estimator, input_fn, as_task):
    make_hook = est.experimental.InMemoryEvaluatorHook
    with pytest.raises(TypeError, match="must be an Estimator"):
        make_hook(None, input_fn)
    with pytest.raises(ValueError, match="every_n_iter"):
        make_hook(make_estimator(), input_fn, every_n_iter=0)
    with pytest.raises(ValueError, match="steps > 0"):
        make_hook(make_estimator(), input_fn, steps=0)
    as_task("chief", tasks={"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]})
    with pytest.raises(ValueError, match="only a single machine"):
        make_hook(make_estimator(), input_fn)


@pytest.mark.parametrize("name", ["saver", "init_fn"])
def test_what_would_set_variables_otherwise_is_refused(input_fn, name, tmp_path):
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", [])
        given = tf1.train.Saver() if name == "saver" else (lambda scaffold, session: None)
        scaffold = tf1.train.Scaffold(**{name: given}) if mode == est.ModeKeys.EVAL else None
        return counting(mode, weight, scaffold=scaffold)

    check_refused(model_fn, f"does not support a Scaffold with {name}", tmp_path, input_fn)


def test_a_training_that_saves_more_than_variables_is_refused(input_fn, tmp_path):
    """Its values would be missing from the evaluation."""

    def model_fn(features, labels, mode):
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
        loss = table.lookup(tf.constant(1, tf.int64)) + tf1.get_variable("weight", [])
        with tf.control_dependencies([table.insert([1], [2.0])]):
            return counting(mode, loss)

    check_refused(model_fn, "does not support saveables other than global variables", tmp_path, input_fn)
