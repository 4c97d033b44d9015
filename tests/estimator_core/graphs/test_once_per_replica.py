"""A model is built once for each replica, in one graph."""

import types

import pytest
import tensorflow as tf

from estimator_core.graphs.build import OncePerReplica


class TwoReplicas(types.SimpleNamespace):
    num_replicas = num_models = 2


@pytest.fixture
def step_fn():
    with tf.Graph().as_default():
        yield OncePerReplica(lambda features, labels: (features, labels), TwoReplicas())


def test_it_builds_one_for_each_and_no_more(step_fn):
    assert step_fn(1, 2) == (1, 2)
    assert step_fn(3, 4) == (3, 4)
    step_fn.check_done()
    with pytest.raises(RuntimeError, match=r"^TwoReplicas.build_step must .*num_replicas=2.* number 3"):
        step_fn(5, 6)


@pytest.mark.parametrize("calls", [0, 1])
def test_fewer_are_refused(step_fn, calls):
    for _ in range(calls):
        step_fn(1, 2)
    with pytest.raises(RuntimeError, match=f"exactly once for each replica.*Received: {calls} calls"):
        step_fn.check_done()


def test_a_loop_that_builds_the_model_in_its_body_is_refused(step_fn):
    def body(done):
        step_fn(1, 2)
        return done + 1

    with pytest.raises(
        RuntimeError, match=r"repeats the train_op .* Received: a call in a WhileBodyFuncGraph"
    ):
        tf.while_loop(lambda done: done < 3, body, [tf.constant(0)])
