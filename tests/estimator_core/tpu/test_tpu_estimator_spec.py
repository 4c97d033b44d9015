import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu

pytestmark = pytest.mark.usefixtures("graph")

TRAIN, EVAL, PREDICT = est.ModeKeys.TRAIN, est.ModeKeys.EVAL, est.ModeKeys.PREDICT


def spec(mode=TRAIN, **arguments):
    return tpu.TPUEstimatorSpec(
        mode, predictions={"p": tf.constant([1.0])}, loss=tf.constant(1.0), train_op=tf.no_op(), **arguments
    )


def mean(values):
    return {"mean": tf1.metrics.mean(values)}


@pytest.mark.parametrize("tensors", [list, tuple, lambda t: {"values": t[0]}])
def test_eval_metrics_take_their_tensors_in_a_list_a_tuple_or_a_dict(graph, tensors):
    metrics = (mean, tensors([tf.constant([1.0, 3.0])]))
    value, update = spec(EVAL, eval_metrics=metrics).as_estimator_spec().eval_metric_ops["mean"]
    with tf1.Session() as session:
        session.run(tf1.local_variables_initializer())
        session.run(update)
        assert session.run(value) == 2.0  # of 1 and 3


@pytest.mark.parametrize("name", ["eval_metrics", "host_call"])
# The types are those that tf.estimator 2.15 raises.
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (5, ValueError, "tuple of two"),
        ((mean,), ValueError, "tuple of two"),
        ((3, [1]), TypeError, "should be callable"),
        ((mean, 3), ValueError, "list or tuple of tensors, or a dict"),
        ((mean, None), ValueError, "list or tuple of tensors, or a dict"),
        ((mean, []), RuntimeError, "takes 1 arguments, and 0 tensors"),
        ((mean, [1, 2]), RuntimeError, "takes 1 arguments, and 2 tensors"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(name, call, error, message):
    with pytest.raises(error, match=message) as raised:
        spec(**{name: call})
    assert name in str(raised.value)


def test_a_function_of_any_number_of_arguments():
    sums = (lambda *values: mean(tf.add_n(values)), [tf.constant(1.0), tf.constant(2.0)])
    assert list(spec(EVAL, eval_metrics=sums).as_estimator_spec().eval_metric_ops) == ["mean"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tpu.TPUEstimatorSpec(TRAIN, loss=tf.constant(1.0)), ValueError, "train_op"),
        (lambda: tpu.TPUEstimatorSpec(PREDICT), ValueError, "predictions"),
        (lambda: spec(training_hooks=[3]), TypeError, "SessionRunHook"),
        (
            lambda: spec(host_call=(lambda value: 3, [tf.constant(1.0)])).as_estimator_spec(),
            TypeError,
            "host_call must return tensors",
        ),
    ],
)
def test_what_a_mode_needs(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_hooks_and_scaffold():
    hooks = [tf1.train.StopAtStepHook(last_step=1) for _ in range(3)]
    scaffold = tf1.train.Scaffold()
    converted = spec(
        training_hooks=hooks[:1],
        evaluation_hooks=hooks[1:2],
        prediction_hooks=hooks[2:],
        scaffold_fn=lambda: scaffold,
        host_call=(tf.identity, [tf.constant(1.0), None]),
    ).as_estimator_spec()
    assert isinstance(converted, est.EstimatorSpec)
    assert converted.scaffold is scaffold
    # Each mode runs its own hook, and then the host call.
    assert converted.training_hooks[0] is hooks[0]
    assert converted.evaluation_hooks[0] is hooks[1]
    assert converted.prediction_hooks[0] is hooks[2]
    assert converted.evaluation_hooks[1] is converted.prediction_hooks[1] is converted.training_hooks[1]


def test_host_call_runs_whatever_structure_it_returns(graph):
    seen = []

    def host_fn(value):
        note = tf1.py_func(lambda v: seen.append(float(v)) or v, [value], tf.float32)
        return {"a": [note, None], "b": tf.no_op()}

    hook = spec(host_call=(host_fn, {"value": tf.constant(7.0)})).as_estimator_spec()
    with tf1.train.MonitoredSession(hooks=hook.training_hooks) as session:
        session.run(tf1.get_default_graph().get_tensor_by_name("Const:0"))
    assert seen == [7.0]
