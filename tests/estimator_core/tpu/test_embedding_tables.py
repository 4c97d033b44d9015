"""EmbeddingConfigSpec on virtual shards: its parameters train the tables, and not model_fn's optimizer."""

import os
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.experimental import input_layer
from tests.estimator_core import shard_programs
from tests.estimator_core.programs import zeros

embedding = tf.tpu.experimental.embedding

IDS = np.array([0, 1, 0, 3])
LABELS = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
# Of mean(label * sum(embedding)), for each weight of a row: the sum of the labels of its examples, by 4.
GRADIENT = np.array([1.0, 0.5, 0.0, 1.0], np.float32)[:, np.newaxis]
TABLE = "input_layer/id_embedding/embedding_weights"


def column(learning_rate_fn=None):
    ids = tf.feature_column.categorical_column_with_identity("id", 4)
    return tf1.tpu.experimental.embedding_column(
        ids, 2, initializer=tf1.ones_initializer(), learning_rate_fn=learning_rate_fn
    )


def momentum():
    return tf1.train.MomentumOptimizer(0.5, 0.5)


def model_fn_of(columns, minimize=None, layer=tf1.feature_column.input_layer):
    """The loss is mean(label * (sum(embedding) + weight)): no gradient depends on a variable."""

    def model_fn(features, labels, mode, params):
        total = tf.reduce_sum(layer(features, columns), axis=1)
        weight = zeros("weight")
        if mode == est.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"total": total})
        loss = tf.reduce_mean(labels * (total + weight))
        if mode == est.ModeKeys.EVAL:
            metrics = (lambda total: {"total": tf1.metrics.mean(total)}, [total])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        step = tf1.train.get_global_step()
        if minimize is not None:
            train_op = minimize(loss, step)
        else:
            reduction = params.get("reduction", tf1.losses.Reduction.MEAN)
            train_op = tpu.CrossShardOptimizer(momentum(), reduction).minimize(loss, step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


PLAIN = tf.feature_column.embedding_column(
    tf.feature_column.categorical_column_with_identity("id", 4), 2, initializer=tf1.ones_initializer()
)
NUMBER = tf.feature_column.numeric_column("number")


def batches_of(features):
    """An input_fn of these features and the labels, again and again."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((features, LABELS)).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return input_fn


input_fn = batches_of({"id": IDS})


def predict_input_fn(params):
    return tf.data.Dataset.from_tensor_slices({"id": [0, 1, 2, 3]}).batch(params["batch_size"])


@pytest.fixture
def make(tmp_path):
    def make_estimator(columns=None, optimizer=None, model_fn=None, of_spec=None, **arguments):
        columns, optimizer = columns or [column()], optimizer or embedding.SGD(0.25)
        spec = tpu.experimental.EmbeddingConfigSpec(columns, optimizer, **(of_spec or {}))
        settings = {"embedding_config_spec": spec, "params": {}, **arguments}
        return shard_programs.estimator(tmp_path, model_fn or model_fn_of(columns), **settings)

    return make_estimator


def by_hand(optimizer, steps):
    """Returns the table of ones after some steps, and its slot variables."""
    table, kept = np.ones([4, 2]), {}
    gradient = np.tile(GRADIENT, 2).astype(np.float64)
    looked_up = gradient != 0
    for _ in range(steps):
        if optimizer == "Adagrad":
            kept["Adagrad"] = kept.get("Adagrad", 0.1) + gradient**2
            moved = gradient / np.sqrt(kept["Adagrad"])
        elif optimizer == "Adam":
            kept["Adam/m"] = 0.9 * kept.get("Adam/m", 0.0) + 0.1 * gradient
            kept["Adam/v"] = 0.999 * kept.get("Adam/v", 0.0) + 0.001 * gradient**2
            moved = kept["Adam/m"] / np.sqrt(kept["Adam/v"] + 1e-7**2)
        else:
            moved = gradient
        table = table - 0.25 * np.where(looked_up, moved, 0.0)
    return table, kept


@pytest.mark.sampled(2)
@pytest.mark.parametrize("num_shards", [1, 2, 4])
@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Adam"])
def test_tables_are_trained_by_their_parameters(make, name, num_shards):
    """Row 0 is looked up on both of two shards."""
    estimator = make(optimizer=getattr(embedding, name)(0.25), num_shards=num_shards)
    estimator.train(input_fn, steps=3)
    table, kept = by_hand(name, 3)
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), table, rtol=1e-5)
    names = estimator.get_variable_names()
    for slot, value in kept.items():
        np.testing.assert_allclose(estimator.get_variable_value(f"{TABLE}/{slot}"), value, rtol=1e-5)
    # model_fn's optimizer trains the weight alone: -0.5 * 2.5 * (1 + 1.5 + 1.75).
    assert estimator.get_variable_value("weight") == -0.5 * 2.5 * 4.25
    assert [name for name in names if "Momentum" in name] == ["weight/Momentum"]


TWO_GRADIENTS = {
    "clipping_limit": 1.25,
    "experimental_gradient_multiplier_fn": lambda step: tf.cast(step, tf.float32) + 2.0,
}
# What is set, and what a table of ones loses in some steps.
LOST = {
    # CrossShardOptimizer does not divide the loss by the shards.
    "a sum over shards": ({"params": {"reduction": tf1.losses.Reduction.SUM}}, 1, 0.25 * 2 * GRADIENT),
    "a learning rate that is a function": ({"optimizer": embedding.SGD(lambda: 0.5)}, 1, 0.5 * GRADIENT),
    "a multiplier and a limit of gradients": (
        {"of_spec": TWO_GRADIENTS},
        2,
        0.25 * (np.minimum(2 * GRADIENT, 1.25) + np.minimum(3 * GRADIENT, 1.25)),
    ),
    "columns that are not for TPUs and numbers": (
        {"columns": [PLAIN, NUMBER], "model_fn": model_fn_of([PLAIN])},
        1,
        0.25 * GRADIENT,
    ),
    "a learning rate that depends on the step": (
        {
            "columns": [column(lambda step: 0.5 / (1.0 + tf.cast(step, tf.float32)))],
            "optimizer": embedding.SGD(100.0),
        },
        3,
        (0.5 + 0.25 + 0.5 / 3) * GRADIENT,  # it sees the steps before the updates: 0, 1 and 2
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("arguments", "steps", "moved"), LOST.values(), ids=LOST)
def test_what_a_table_loses(make, arguments, steps, moved):
    estimator = make(**arguments).train(input_fn, steps=steps)
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), 1 - np.tile(moved, 2), rtol=1e-6)


@pytest.mark.more
def test_the_tables_of_a_checkpoint_are_used_everywhere(make, tmp_path):
    estimator = make().train(input_fn, steps=1)
    rows = estimator.get_variable_value(TABLE).sum(axis=1)
    np.testing.assert_allclose(rows, [1.5, 1.75, 2.0, 1.5])
    assert estimator.evaluate(input_fn, steps=1)["total"] == pytest.approx(rows[IDS].mean())
    np.testing.assert_allclose([row["total"] for row in estimator.predict(predict_input_fn)], rows)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"id": tf.TensorSpec([None], tf.int64)})
    path = make(export_to_tpu=False).export_saved_model(str(tmp_path / "export"), receiver_fn)
    signature = tf.saved_model.load(os.fsdecode(path)).signatures["serving_default"]
    np.testing.assert_allclose(signature(id=tf.constant([3, 1], tf.int64))["total"], rows[[3, 1]])
    make().train(input_fn, steps=1)  # it goes on from there
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), by_hand("SGD", 2)[0])


def test_shared_columns_have_one_table(make):
    """Both columns look up row 0 and others; the gradients of a row are those of both."""
    ids = [tf.feature_column.categorical_column_with_identity(name, 4) for name in ("id", "other")]
    columns = tf1.tpu.experimental.shared_embedding_columns(ids, 2, initializer=tf1.ones_initializer())

    both_input_fn = batches_of({"id": IDS, "other": IDS[::-1].copy()})
    estimator = make(columns, model_fn=model_fn_of(columns, layer=input_layer))
    estimator.train(both_input_fn, steps=1)
    # "other" is 3, 0, 1, 0 with the labels 1, 2, 3, 4: rows 0, 1 and 3 have 6, 3 and 1, by 4.
    gradient = GRADIENT + np.array([1.5, 0.75, 0.0, 0.25])[:, np.newaxis]
    (name,) = [name for name in estimator.get_variable_names() if "shared" in name]
    np.testing.assert_allclose(estimator.get_variable_value(name), 1 - 0.25 * np.tile(gradient, 2))


def clipped(loss, step):
    """Clips by the norm of gradients without those of tables: the weight's is 2.5 on two shards."""
    optimizer = tpu.CrossShardOptimizer(momentum())
    pairs = optimizer.compute_gradients(loss)
    gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.25)
    return optimizer.apply_gradients(zip(gradients, [variable for _, variable in pairs], strict=True), step)


def test_norms_of_gradients_are_without_tables(make):
    estimator = make(model_fn=model_fn_of([column()], clipped)).train(input_fn, steps=1)
    # Shards have the gradients 0.75 and 1.75 of the weight, which are clipped to 0.25 each.
    np.testing.assert_allclose(estimator.get_variable_value("weight"), -0.5 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), by_hand("SGD", 1)[0])


def with_gradients_of_tensorflow(loss, step):
    variables = tf1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    return tpu.CrossShardOptimizer(momentum()).apply_gradients(zip(gradients, variables, strict=True), step)


def test_gradients_that_no_optimizer_computed(make):
    """Nothing divides them by the two shards."""
    model_fn = model_fn_of([column()], with_gradients_of_tensorflow)
    estimator = make(model_fn=model_fn).train(input_fn, steps=1)
    expected = 1 - 0.25 * 2 * np.tile(GRADIENT, 2)
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), expected)
    assert estimator.get_variable_value("weight") == -0.5 * 5.0


def test_a_model_of_tables_alone(make):
    columns = [column()]

    def tables_alone(features, labels, mode, params):
        loss = tf.reduce_mean(
            labels * tf.reduce_sum(tf1.feature_column.input_layer(features, columns), axis=1)
        )
        train_op = tpu.CrossShardOptimizer(momentum()).minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make(columns, model_fn=tables_alone).train(input_fn, steps=3)
    assert estimator.get_variable_value("global_step") == 3
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), by_hand("SGD", 3)[0])
    assert sorted(estimator.get_variable_names()) == ["global_step", TABLE]


def twice(loss, step):
    return tf.group(
        tpu.CrossShardOptimizer(momentum()).minimize(loss, step),
        tpu.CrossShardOptimizer(momentum()).minimize(2.0 * loss),
    )


def by_itself(loss, step):
    train_op = tpu.CrossShardOptimizer(momentum()).minimize(loss, step)
    (table,) = [v for v in tf1.trainable_variables() if v.op.name == TABLE]
    return tf.group(train_op, table.assign_sub(tf.ones_like(table)))


def without_sums(loss, step):
    variables = tf1.trainable_variables()
    gradients = [tpu.cross_replica_sum(tf.convert_to_tensor(g)) for g in tf.gradients(loss, variables)]
    return momentum().apply_gradients(zip(gradients, variables, strict=True), step)


@pytest.mark.parametrize(
    ("minimize", "error", "message"),
    [
        (twice, RuntimeError, f"once: .* variable {TABLE}:0"),
        (by_itself, ValueError, f"variable {TABLE}:0, updated by"),
        (without_sums, RuntimeError, f"be given to CrossShardOptimizer.* variable {TABLE}:0"),
    ],
)
def test_other_ways_to_train_a_table_are_refused(make, minimize, error, message):
    with pytest.raises(error, match=message):
        make(model_fn=model_fn_of([column()], minimize)).train(input_fn, steps=1)


def test_a_column_has_one_table_and_is_looked_up(make):
    other = tf.feature_column.categorical_column_with_identity("other", 4)
    unused = tf1.tpu.experimental.embedding_column(other, 2)
    with pytest.raises(RuntimeError, match="column 'other_embedding'"):
        make([column(), unused], model_fn=model_fn_of([column()])).train(input_fn, steps=1)

    def layer(features, columns):
        with tf1.variable_scope("again"):
            again = tf1.feature_column.input_layer(features, columns)
        return again + tf1.feature_column.input_layer(features, columns)

    with pytest.raises(ValueError, match="one table: look it up in one variable scope"):
        make(model_fn=model_fn_of([column()], layer=layer)).train(input_fn, steps=1)


def test_a_table_that_the_loss_does_not_depend_on(make, caplog):
    columns = [column()]
    model_fn = model_fn_of(
        columns, layer=lambda *args: tf.stop_gradient(tf1.feature_column.input_layer(*args))
    )
    estimator = make(columns, model_fn=model_fn).train(input_fn, steps=1)
    assert np.all(estimator.get_variable_value(TABLE) == 1.0)
    assert f"does not depend on the embedding table {TABLE}:0" in caplog.text


def test_with_one_device_the_optimizer_of_model_fn_trains_the_columns(make):
    estimator = make(use_tpu=False).train(input_fn, steps=1)
    expected = 1 - 0.5 * np.tile(GRADIENT, 2)
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), expected)
    assert f"{TABLE}/Momentum" in estimator.get_variable_names()


def test_what_shards_do_not_have(make, tmp_path):
    with pytest.raises(RuntimeError, match="AdagradMomentum"):
        make(optimizer=embedding.AdagradMomentum(0.1)).train(input_fn, steps=1)

    feature, table = types.SimpleNamespace(table_id="table"), types.SimpleNamespace(vocabulary_size=10)
    spec = tpu.experimental.EmbeddingConfigSpec(
        feature_to_config_dict={"id": feature}, table_to_config_dict={"table": table}
    )
    with pytest.raises(RuntimeError, match="leave feature_to_config_dict and table_to_config_dict"):
        make(embedding_config_spec=spec).train(input_fn, steps=1)


def sparse_ids(rows):
    """A SparseTensor of the ids of each row."""
    indices = [[row, place] for row, ids in enumerate(rows) for place in range(len(ids))]
    values = np.array([each for ids in rows for each in ids], np.int64)
    shape = [len(rows), max(map(len, rows))]
    return tf.SparseTensor(np.reshape(indices, [-1, 2]).astype(np.int64), values, shape)


@pytest.mark.more
@pytest.mark.parametrize("per_host", [True, tpu.InputPipelineConfig.PER_HOST_V2])
@pytest.mark.parametrize("num_shards", [1, 2])
def test_rows_of_sparse_ids_are_averaged(make, num_shards, per_host):
    """Examples with the ids (0, 1), (1,), none and (3, 3), whose rows are averaged."""
    rows = [[0, 1], [1], [], [3, 3]]
    config = {"per_host_input_for_training": per_host}

    def sparse_input_fn(params):
        return batches_of({"id": sparse_ids(rows)})(params)

    estimator = make(config=config, num_shards=num_shards).train(sparse_input_fn, steps=1)
    # By 4: half of 1 for row 0, half of 1 and 2 for row 1, 4 for row 3.
    table = 1 - 0.25 * np.tile(np.array([0.125, 0.625, 0.0, 1.0])[:, np.newaxis], 2)
    np.testing.assert_allclose(estimator.get_variable_value(TABLE), table)
    of_rows = table.sum(axis=1)
    totals = [of_rows[[0, 1]].mean(), of_rows[1], 0.0, of_rows[3]]
    assert estimator.evaluate(sparse_input_fn, steps=1)["total"] == pytest.approx(np.mean(totals))

    def sparse_predict_input_fn(params):  # the last batch is smaller
        dataset = tf.data.Dataset.from_tensor_slices({"id": sparse_ids([*rows, [0], [3]])})
        return dataset.batch(params["batch_size"])

    predicted = [row["total"] for row in estimator.predict(sparse_predict_input_fn)]
    np.testing.assert_allclose(predicted, [*totals, of_rows[0], of_rows[3]], rtol=1e-6)


def test_sparse_features_are_for_tables(make):
    def sparse_input_fn(params):
        return tf.data.Dataset.from_tensors(({"id": sparse_ids([[0], [1]])}, LABELS[:2])).repeat()

    with pytest.raises(ValueError, match="must return tensors of static shape"):
        make(embedding_config_spec=None).train(sparse_input_fn, steps=1)
