"""Estimators on two devices. Each replica takes a batch of its own.

The numbers of LinearRegressor and of the model_fn are those of tf.estimator 2.15 for the same
programs (MirroredStrategy over two logical CPU devices, ReductionToOneDevice).
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import assert_same, descent, saved_steps, values_of, weight_model_fn, zeros


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


@pytest.fixture
def config(strategy, tmp_path):
    return est.RunConfig(
        model_dir=str(tmp_path), train_distribute=strategy, eval_distribute=strategy, log_step_count_steps=1
    )


def input_fn():
    """x = 1 .. 6, twice, labels 2 x: six batches of two."""
    x = np.arange(1.0, 7.0, dtype=np.float32)[:, None]
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 2.0 * x)).repeat(2).batch(2)


def check_numbers(estimator):
    """After training on `input_fn`."""
    assert estimator.get_variable_value("global_step") == 3
    assert estimator.get_variable_value("weight") == pytest.approx(1.35077, rel=1e-5)
    metrics = estimator.evaluate(input_fn)
    assert metrics["mae"] == pytest.approx(2.272305, rel=1e-5)
    assert metrics["loss"] == pytest.approx(6.392744, rel=1e-5)


def test_a_model_fn_takes_the_mean_gradient_of_the_replicas(config, caplog):
    estimator = est.Estimator(weight_model_fn, config=config)
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator.train(input_fn)
    losses = [line for line in caplog.messages if line.startswith("loss = ")]
    assert losses[0] == "loss = 30.0, step = 0"
    assert losses[1].startswith("loss = 47.68")
    assert "step = 2" in losses[2]
    check_numbers(estimator)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("api", [tf, tf1], ids=["tf", "tf1"])
def test_central_storage_trains_and_evaluates_as_mirrored_variables_do(api, tmp_path):
    strategy = api.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")
    config = est.RunConfig(model_dir=str(tmp_path), train_distribute=strategy, eval_distribute=strategy)
    check_numbers(est.Estimator(weight_model_fn, config=config).train(input_fn))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("loss_reduction", "weight", "bias", "eval_loss"),
    [("sum_over_batch_size", 201.44002, 42.72, 664739.75), ("sum", 21083.842, 4422.72, 14825936000.0)],
)
def test_a_canned_estimator(config, loss_reduction, weight, bias, eval_loss):
    column = tf.feature_column.numeric_column("x")
    estimator = est.LinearRegressor([column], optimizer="SGD", loss_reduction=loss_reduction, config=config)
    estimator.train(input_fn)
    variables = values_of(estimator)
    np.testing.assert_allclose(variables["linear/linear_model/x/weights"], [[weight]], rtol=1e-5)
    np.testing.assert_allclose(variables["linear/linear_model/bias_weights"], [bias], rtol=1e-5)
    assert set(variables) == {
        "global_step", "linear/linear_model/x/weights", "linear/linear_model/bias_weights",
        "training/SGD/decay", "training/SGD/learning_rate", "training/SGD/momentum",
    }  # fmt: skip
    assert estimator.evaluate(input_fn)["loss"] == pytest.approx(eval_loss, rel=1e-5)


@pytest.mark.more
def test_a_model_dir_goes_on_with_another_number_of_devices(config):
    estimator = est.Estimator(weight_model_fn, config=config).train(input_fn, steps=2)
    est.Estimator(weight_model_fn, model_dir=estimator.model_dir).train(input_fn, steps=1)
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("global_step") == 4
    rows = list(estimator.predict(input_fn))
    weight = estimator.get_variable_value("weight")
    np.testing.assert_allclose([row["y"] for row in rows[:2]], [[weight], [2 * weight]], rtol=1e-6)


@pytest.mark.more
@pytest.mark.parametrize("optimizer", ["Adagrad", "Adam", "Ftrl", "RMSProp"])
def test_two_replicas_with_half_the_batch_learn_what_one_does(strategy, tmp_path, optimizer):
    """The mean loss over 2 x 3 examples is that over one batch of 6."""
    ids = tf.feature_column.categorical_column_with_identity("i", 3)
    embedding = tf.feature_column.embedding_column(ids, 2, initializer=tf1.initializers.constant(0.5))
    columns = [tf.feature_column.numeric_column("x"), embedding]

    def examples(batch_size):
        x = np.linspace(-1.0, 1.0, 12, dtype=np.float32)[:, None]
        i = np.arange(12, dtype=np.int64)[:, None] % 3
        return lambda: tf.data.Dataset.from_tensor_slices(({"x": x, "i": i}, 3 * x)).batch(batch_size)

    def model(name, optimizer, **settings):
        config = est.RunConfig(model_dir=str(tmp_path / name), tf_random_seed=1, **settings.pop("run", {}))
        return est.DNNEstimator(
            est.RegressionHead(), [], columns, optimizer=optimizer, config=config, **settings
        )

    # Both start from the same weights, which the random initializer would not give them.
    start = model("start", "SGD").train(examples(6), steps=1).model_dir
    one = model("one", optimizer, warm_start_from=start).train(examples(6))
    two = model("two", optimizer, warm_start_from=start, run={"train_distribute": strategy})
    two.train(examples(3))
    assert_same(values_of(two), values_of(one), rtol=1e-5, atol=1e-7)


def test_early_stopping_stops_all_replicas(config):
    estimator = est.Estimator(weight_model_fn, config=config.replace(save_checkpoints_steps=1))
    is_over = lambda: estimator.latest_checkpoint().endswith("-2")  # noqa: E731
    stop = est.experimental.make_early_stopping_hook(estimator, is_over, None, run_every_steps=1)
    estimator.train(lambda: input_fn().repeat(), hooks=[stop], max_steps=20)
    assert 2 <= estimator.get_variable_value("global_step") <= 4


@pytest.mark.more
def test_train_and_evaluate_with_a_best_exporter(config):
    estimator = est.LinearRegressor([tf.feature_column.numeric_column("x")], optimizer="Ftrl", config=config)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 1], tf.float32)})
    metrics, exports = est.train_and_evaluate(
        estimator,
        est.TrainSpec(lambda: input_fn().repeat(), max_steps=5),
        est.EvalSpec(input_fn, exporters=est.BestExporter(serving_input_receiver_fn=receiver_fn)),
    )
    assert metrics["global_step"] == 5
    assert tf.saved_model.contains_saved_model(tf.compat.as_str(exports[0]))


def test_input_that_is_no_dataset_is_refused(config):
    estimator = est.Estimator(weight_model_fn, config=config)
    with pytest.raises(ValueError, match=r"must return a tf.data.Dataset"):
        estimator.train(lambda: ({"x": tf.ones([1, 1])}, tf.ones([1, 1])))


def test_what_the_scaffolds_of_all_replicas_ask_for_is_done(config):
    initialized = []

    def model_fn(features, labels, mode):
        weight = zeros("weight")
        seen = tf1.get_local_variable("seen", [], initializer=tf1.zeros_initializer())
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        name = f"replica {int(tf.get_static_value(replica))}"
        loss = tf.reduce_sum(features["x"]) * weight
        scaffold = tf1.train.Scaffold(
            init_fn=lambda scaffold, session: initialized.append(name),
            local_init_op=tf.group(tf1.local_variables_initializer(), seen.assign(7.0)),
            saver=tf1.train.Saver(max_to_keep=2),
        )
        return est.EstimatorSpec(mode, loss=loss + 0.0 * seen, train_op=descent(loss, 0.0), scaffold=scaffold)

    config = config.replace(save_checkpoints_steps=1)
    estimator = est.Estimator(model_fn, config=config).train(input_fn)
    assert initialized == ["replica 0", "replica 1"]
    assert saved_steps(estimator.model_dir) == [2, 3]


def test_warm_start_reaches_every_replica(config, tmp_path):
    first = est.Estimator(weight_model_fn, str(tmp_path / "first")).train(input_fn, steps=3)
    start = first.get_variable_value("weight")
    second = est.Estimator(
        weight_model_fn,
        config=config.replace(model_dir=str(tmp_path / "second"), save_checkpoints_steps=1),
        warm_start_from=str(tmp_path / "first"),
    ).train(input_fn, steps=1)
    assert tf.train.load_variable(str(tmp_path / "second" / "model.ckpt-0"), "weight") == start
    # Both replicas used it: x = 1, 2 on one, 3, 4 on the other; the gradient of the mean loss over
    # all four is 2 (w - 2) mean(x^2) = 15 (w - 2), the learning rate 0.01.
    assert second.get_variable_value("weight") == pytest.approx(start - 0.15 * (start - 2.0), rel=1e-5)


def test_get_updates_of_a_legacy_optimizer_in_a_model_fn(config):
    tf_keras = pytest.importorskip("tf_keras")

    def model_fn(features, labels, mode):
        layer = tf_keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        loss = tf.reduce_mean(tf.square(layer(features["x"]) - labels))
        loss /= tf.distribute.get_strategy().num_replicas_in_sync
        optimizer = tf_keras.optimizers.legacy.SGD(0.01)
        optimizer.iterations = tf1.train.get_or_create_global_step()
        (train_op,) = optimizer.get_updates(loss, layer.trainable_variables)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = est.Estimator(model_fn, config=config).train(input_fn)
    assert estimator.get_variable_value("global_step") == 3
    # The slope is 2 (w - 2) mean(x^2), with the means 7.5, 16.5 and 21.5 over the batches of a step.
    left = 2.0 * (1 - 0.02 * 7.5) * (1 - 0.02 * 16.5) * (1 - 0.02 * 21.5)
    assert estimator.get_variable_value("dense/kernel") == pytest.approx(2.0 - left, rel=1e-5)


def test_an_optimizer_of_tf_keras_that_is_not_legacy_is_refused(config):
    optimizer = pytest.importorskip("tf_keras").optimizers.SGD(0.1)
    columns = [tf.feature_column.numeric_column("x")]
    with pytest.raises(ValueError, match=r"must be those of tf_keras\.optimizers\.legacy"):
        est.LinearRegressor(columns, optimizer=optimizer, config=config).train(input_fn)


@pytest.mark.more
def test_a_keras_optimizer_of_a_canned_estimator(strategy, tmp_path):
    """Two replicas with batches of 3 learn the same as one with batches of 6."""
    x = np.linspace(-1.0, 1.0, 12, dtype=np.float32)[:, None]
    kernels = []

    def examples(batch_size):
        return tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x)).batch(batch_size)

    for name, distribute, batch_size in (("one", None, 6), ("two", strategy, 3)):
        estimator = est.LinearRegressor(
            [tf.feature_column.numeric_column("x")],
            optimizer=keras.optimizers.Adam(0.1),
            config=est.RunConfig(model_dir=str(tmp_path / name), train_distribute=distribute),
        ).train(lambda size=batch_size: examples(size))
        kernels.append(estimator.get_variable_value("linear/linear_model/x/weights"))
    np.testing.assert_allclose(kernels[1], kernels[0], rtol=1e-6)
    assert abs(kernels[0][0, 0]) > 0.1


@pytest.mark.more
def test_batches_that_do_not_go_around_are_dropped(config):
    """Of five batches of one, x = 1 .. 5, two replicas take four."""

    def five():
        x = np.arange(1.0, 6.0, dtype=np.float32)[:, None]
        return tf.data.Dataset.from_tensor_slices(({"x": x}, 2.0 * x)).batch(1)

    estimator = est.Estimator(weight_model_fn, config=config).train(five)
    assert estimator.get_variable_value("global_step") == 2
    weight = estimator.get_variable_value("weight")
    for _ in range(3):
        # |w x - 2 x| over x = 1, 2, 3, 4.
        assert estimator.evaluate(five)["mae"] == pytest.approx(2.5 * abs(weight - 2), rel=1e-5)


@pytest.mark.more
def test_fewer_batches_than_replicas_are_told(config, caplog):
    estimator = est.Estimator(weight_model_fn, config=config).train(input_fn)
    assert estimator.evaluate(lambda: input_fn().take(1))["loss"] == 0
    assert "less than one batch for each of 2 replicas" in caplog.text
