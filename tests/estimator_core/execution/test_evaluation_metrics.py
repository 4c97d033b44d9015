"""The metrics of an evaluation become ops, and its loss one of them."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.evaluation_metrics import with_evaluation_metrics, with_metric_ops
from estimator_core.spec.metric_fn import MetricFn

pytestmark = pytest.mark.usefixtures("graph")


def test_a_function_of_metrics_is_called_once():
    calls = []

    x = tf.constant([2.0, 4.0])
    metrics = MetricFn(lambda x: calls.append(x) or {"mean": tf1.metrics.mean(x)}, [x])
    spec = est.EstimatorSpec("eval", loss=tf.constant(0.0), eval_metric_ops=metrics)
    assert calls == []
    assert set(with_metric_ops(spec).eval_metric_ops) == {"mean"}
    assert len(calls) == 1
    assert calls[0] is x


def test_ops_stay_as_they_are():
    metrics = {"mean": tf1.metrics.mean([1.0])}
    spec = est.EstimatorSpec("eval", loss=tf.constant(0.0), eval_metric_ops=metrics)
    assert with_metric_ops(spec) is spec


def test_the_loss_is_the_mean_over_batches():
    loss = tf1.placeholder(tf.float32, [])
    spec = with_evaluation_metrics(est.EstimatorSpec("eval", loss=loss))
    value, update = spec.eval_metric_ops["loss"]
    with tf1.Session() as session:
        session.run(tf1.local_variables_initializer())
        for batch_loss in (1.0, 2.0, 6.0):
            session.run(update, {loss: batch_loss})
        assert session.run(value) == 3.0


def test_a_local_init_op_made_before_starts_the_loss_as_well():
    scaffold = tf1.train.Scaffold(local_init_op=tf1.local_variables_initializer())
    spec = with_evaluation_metrics(est.EstimatorSpec("eval", loss=tf.constant(4.0), scaffold=scaffold))
    value, update = spec.eval_metric_ops["loss"]
    with tf1.Session() as session:
        session.run(spec.scaffold.local_init_op)
        session.run(update)
        assert session.run(value) == 4.0
