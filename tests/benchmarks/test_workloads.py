"""Each way to train does the same work: with few steps, so that it is quick."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import estimator_core
from benchmarks.workloads import cnn, dnn, floor, hooked, rnn, sparse_linear, training, vector

SHORT = {"warm_up_steps": 3, "steps": 7}


@pytest.mark.more
@pytest.mark.parametrize(
    ("work", "ways"),
    [
        (dnn.WORK, ("keras", "floor")),
        pytest.param(dnn.KERAS_MODEL, ("keras",), marks=pytest.mark.slow),
        (hooked.WORK, ()),
        pytest.param(sparse_linear.WORK, (), marks=pytest.mark.slow),
        pytest.param(cnn.WORK, ("floor",), marks=pytest.mark.slow),
        pytest.param(rnn.WORK, ("keras", "floor"), marks=pytest.mark.slow),
        (vector.work(32, 5), ("keras", "floor")),
    ],
    ids=["dnn", "keras_model", "hooked", "sparse_linear", "cnn", "rnn", "vector"],
)
def test_all_ways_to_train_do_the_same(work, ways):
    work = dataclasses.replace(work, **SHORT)
    config = {"steps_per_session_run": 4}
    results = [training.by_estimator(work, estimator_core, config, check=True)]
    if "keras" in ways:
        results.append(training.by_keras(work, 1, False, check=True))
    if "floor" in ways:
        results.append(training.by_floor(work, False, check=True))
    checks = [result["check"] for result in results]
    losses = [check.pop("loss") for check in checks]
    assert checks == [checks[0]] * len(checks)
    assert checks[0]["steps"] == 10
    assert np.isfinite(losses).all()
    assert all(result["secs"] > 0 and result["processor_secs"] > 0 for result in results)


def test_a_batch_of_another_size_is_no_batch_of_the_work():
    work = dataclasses.replace(dnn.WORK, batch_size=64)
    with pytest.raises(ValueError, match=r"A batch has 64 examples. Received: \{128\}"):
        training.checked(work, [], 0, 0.0)


@pytest.mark.parametrize(
    ("own", "keras"),
    [
        (floor.Adam(0.1), tf.keras.optimizers.Adam(0.1)),
        # Of the first gradient, the norm is 5; it is above 2.
        (floor.Adagrad(0.1, clipnorm=2.0), tf.keras.optimizers.Adagrad(0.1, clipnorm=2.0)),
    ],
    ids=["Adam", "Adagrad"],
)
def test_the_optimizers_of_the_floor_are_those_of_keras(own, keras):
    start = np.array([1.0, -2.0, 0.5], np.float32)
    variable = tf.Variable(start)
    value, slots = tf.constant(start), own.slots(tf.constant(start))
    for number, gradient in enumerate([[3.0, -4.0, 0.0], [0.5, 0.25, -1.0], [0.0, 1.0, 0.1]], 1):
        keras.apply_gradients([(tf.constant(gradient), variable)])
        value, slots = own.update(value, slots, tf.constant(gradient), number)
    np.testing.assert_allclose(value, variable, rtol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_loop_makes_the_steps_of_one_after_the_other(jit_compile):
    # The loss of batch i is w * data[i]: gradient descent by hand.
    @dataclasses.dataclass
    class Descent:
        def slots(self, parameter):
            return []

        def update(self, parameter, slots, gradient, step):
            return parameter - tf.cast(step, tf.float32) * gradient, slots

    data = np.array([[1.0], [10.0], [100.0]], np.float32)
    model = floor.Model([np.float32(0)], lambda parameters, batch: parameters[0] * batch[0], data, Descent())
    loop = floor.Loop(model, jit_compile)
    loop.run(2)
    assert float(loop.parameters[0]) == -(1 * 1 + 2 * 10)
    loop.run(3)
    assert float(loop.parameters[0]) == -(1 * 1 + 2 * 10 + 3 * 100 + 4 * 1 + 5 * 10)
    assert loop.steps == 5
    assert loop.mean_loss(2) == pytest.approx(-375 * (1 + 10) / 2)
