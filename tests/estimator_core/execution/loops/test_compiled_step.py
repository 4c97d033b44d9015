"""Training by compiled steps, beside training by the operations of the graph."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.loops.compiled_step import CompiledSteps
from estimator_core.execution.loops.in_graph_loop import ManySteps
from estimator_core.execution.single_device import SingleDevice
from tests.estimator_core.programs import assert_same, values_of, zeros

BATCH = 8


def numbers(rows=BATCH * 5 + 3, epochs=2, seed=0):
    """Batches of 8, and one of 3 at the end of each epoch."""
    x = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    y = (x[:, :1] + x[:, 1:2] > 0).astype(np.float32)
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(BATCH).repeat(epochs)


def dense(inputs, units, name, seed):
    shape = [inputs.shape[1], units]
    kernel = tf1.get_variable(f"{name}/kernel", shape, initializer=tf1.glorot_uniform_initializer(seed=seed))
    return tf.matmul(inputs, kernel) + zeros(f"{name}/bias", [units])


def clipped(optimizer, loss, step):
    pairs = optimizer.compute_gradients(loss)
    gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.3)
    return optimizer.apply_gradients(
        [(gradient, each) for gradient, (_, each) in zip(gradients, pairs, strict=True)], step
    )


OPTIMIZERS = {
    "adam": lambda rate: tf1.train.AdamOptimizer(rate),
    "adagrad": lambda rate: tf1.train.AdagradOptimizer(rate),
    "ftrl": lambda rate: tf1.train.FtrlOptimizer(rate, l1_regularization_strength=0.001),
    "momentum": lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    "rmsprop": lambda rate: tf1.train.RMSPropOptimizer(rate),
}


def network(optimizer="adam", change=lambda hidden, features: hidden):
    def model_fn(features, labels, mode):
        step = tf1.train.get_global_step()
        hidden = tf.nn.relu(dense(features["x"], 6, "first", 1))
        mean, variance = tf.nn.moments(hidden, [0])
        moving = zeros("moving_mean", [6])
        update = tf1.assign_sub(moving, 0.1 * (moving - mean))
        hidden = change((hidden - mean) * tf1.rsqrt(variance + 0.1), features)
        loss = tf1.losses.sigmoid_cross_entropy(labels, dense(hidden, 1, "logits", 2))
        rate = tf1.train.polynomial_decay(0.05, step, 30, 0.01)
        with tf.control_dependencies([update]):
            train_op = clipped(OPTIMIZERS[optimizer](rate), loss, step)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def trained(model_fn, input_fn, model_dir, jit_compile, steps=None, calls=20):
    config = est.RunConfig(
        str(model_dir), steps_per_session_run=calls, jit_compile=jit_compile, tf_random_seed=None
    )
    return values_of(est.Estimator(model_fn, config=config).train(input_fn, max_steps=steps))


TO_ROUNDING = {"rtol": 1e-5, "atol": 2e-6}


@pytest.mark.more
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_compiled_steps_equal_others_to_rounding(optimizer, tmp_path, caplog):
    model_fn = network(optimizer)
    expected = trained(model_fn, numbers(), tmp_path / "plain", False)
    caplog.set_level("INFO")
    found = trained(model_fn, numbers(), tmp_path / "compiled", True)
    assert "XLA has compiled" in caplog.text
    assert "for batches of 8" in caplog.text
    # 5 batches of 8 and one of 3, twice: each is trained on once, in calls of 1, 20 (the end comes within)
    assert found["global_step"] == 12
    assert_same(found, expected, **TO_ROUNDING)


@pytest.mark.more
def test_auto_decides_and_computes_the_same_again(tmp_path, caplog):
    caplog.set_level("INFO")
    first = trained(network(), numbers(), tmp_path / "first", "auto", steps=11, calls=4)
    assert "XLA has compiled" in caplog.text
    again = trained(network(), numbers(), tmp_path / "again", "auto", steps=11, calls=4)
    assert first["global_step"] == again["global_step"] == 11
    assert_same(again, first)


@pytest.mark.more
def test_an_unseeded_dropout_is_compiled_and_a_seeded_one_is_not(tmp_path):
    def dropout(seed):
        return network(change=lambda hidden, features: tf1.nn.dropout(hidden, rate=0.5, seed=seed))

    assert trained(dropout(None), numbers(), tmp_path / "a", True)["global_step"] == 12
    with pytest.raises(ValueError, match=r"RandomUniform.*order of its seed.*jit_compile=True"):
        trained(dropout(7), numbers(), tmp_path / "b", True)


def checked(hidden, features):
    del features
    return tf.debugging.check_numerics(hidden, "hidden is bad")


def looked_up(hidden, features):
    table = tf1.get_variable("table", [3, 6], initializer=tf1.ones_initializer())
    return hidden + tf.gather(table, tf.cast(features["x"][:, 0] > 0, tf.int32))


@pytest.mark.more
@pytest.mark.parametrize(("change", "name"), [(checked, "CheckNumerics"), (looked_up, "Gather")])
def test_what_xla_would_not_check_is_not_compiled(change, name, tmp_path, caplog):
    with pytest.raises(ValueError, match=rf"can't compile.*{name}.*Received: jit_compile=True"):
        trained(network(change=change), numbers(), tmp_path / "true", True)
    expected = trained(network(change=change), numbers(), tmp_path / "plain", False)
    caplog.set_level("INFO")
    found = trained(network(change=change), numbers(), tmp_path / "auto", "auto")
    assert "XLA has compiled" not in caplog.text
    assert name in caplog.text
    assert_same(found, expected)


def ones(batches, row, x=1.0, y=1.0):
    """Batches of ones, but for one row."""
    features, labels = np.ones((batches * BATCH, 4), np.float32), np.ones((batches * BATCH, 1), np.float32)
    features[row], labels[row] = x, y
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": features}, labels)).batch(
        BATCH, drop_remainder=True
    )


@pytest.mark.more
def test_an_assertion_about_the_input_ends_training_after_the_steps_before_it(tmp_path):
    def model_fn(features, labels, mode):
        x = features["x"]
        with tf.control_dependencies([tf1.assert_positive(x, message="x must be positive")]):
            features = {"x": tf.identity(x)}
        return network()(features, labels, mode)

    with pytest.raises(tf.errors.InvalidArgumentError, match="x must be positive") as error:
        trained(model_fn, ones(6, row=4 * BATCH, x=-1), tmp_path, True)  # in the fifth batch
    assert "the global step is 4" in "".join(error.value.__notes__)


@pytest.mark.more
def test_a_nan_loss_ends_training_at_its_step(tmp_path):
    with pytest.raises(tf1.train.NanLossDuringTrainingError, match="7"):
        trained(network(), ones(9, row=6 * BATCH, y=np.nan), tmp_path, True)  # in the seventh batch


@pytest.mark.more
def test_batches_of_ever_new_sizes_are_not_compiled_for_ever(tmp_path, caplog):
    caplog.set_level("INFO")

    def input_fn():
        def batches():
            for size in range(2, 22):
                yield {"x": np.full((size, 4), 0.1 * size, np.float32)}, np.ones((size, 1))

        spec = ({"x": tf.TensorSpec([None, 4])}, tf.TensorSpec([None, 1]))
        return tf.data.Dataset.from_generator(batches, output_signature=spec)

    found = trained(network(), input_fn, tmp_path / "auto", "auto")
    assert found["global_step"] == 20
    assert caplog.text.count("as 11 batches had other shapes") == 1
    assert_same(found, trained(network(), input_fn, tmp_path / "plain", False), **TO_ROUNDING)


@pytest.mark.more
def test_a_canned_model_of_numbers(tmp_path):
    columns = [tf.feature_column.numeric_column("x", shape=(4,))]

    def weights(jit_compile):
        model_dir = tmp_path / str(jit_compile)
        config = est.RunConfig(
            str(model_dir), steps_per_session_run=20, jit_compile=jit_compile, tf_random_seed=3
        )
        model = est.DNNClassifier([5, 3], columns, optimizer="Adam", config=config)
        return values_of(model.train(numbers()))

    assert_same(weights(True), weights(False), **TO_ROUNDING)


@pytest.mark.more
def test_without_the_compiler_auto_trains_as_it_is_and_loses_nothing(tmp_path, caplog, monkeypatch):
    expected = trained(network(), numbers(), tmp_path / "plain", False)

    def fail(steps, session, batch_sizes):
        assert batch_sizes == [BATCH]
        raise tf.errors.NotFoundError(None, None, "no compiler for the platform Host")

    monkeypatch.setattr(CompiledSteps, "_compile", fail)
    caplog.set_level("INFO")
    found = trained(network(), numbers(), tmp_path / "auto", "auto")
    assert "XLA does not compile training steps, as no compiler for the platform Host" in caplog.text
    assert_same(found, expected)
    with pytest.raises(ValueError, match=r"can't compile.*no compiler for the platform Host"):
        trained(network(), numbers(), tmp_path / "true", True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("jit_compile", "most"), [("auto", 100), (True, 100), (False, None)])
def test_a_call_with_compiled_steps_goes_by_number_not_by_time(jit_compile, most, graph):
    tf1.train.create_global_step()
    batch = tf1.data.make_one_shot_iterator(numbers(epochs=None)()).get_next()
    spec = network()(*batch, "train")
    execution = SingleDevice(many_steps=ManySteps(1000, 0.2), jit_compile=jit_compile)
    assert execution.make_step(spec, "train").prepare() == most
