"""model_fns of users' own, as they were written with `tf.compat.v1`."""

import functools

import tensorflow as tf

from tests.oracle.programs.data import GRADES, KINDS, dense, with_tags
from tests.oracle.programs.program import Program

tf1 = tf.compat.v1

SERVING_FEATURES = {
    "size": tf.io.FixedLenFeature([], tf.float32),
    "place": tf.io.FixedLenFeature([2], tf.float32),
    "kind": tf.io.FixedLenFeature([], tf.string),
    "floor": tf.io.FixedLenFeature([], tf.int64),
    "tags": tf.io.VarLenFeature(tf.string),
}


def _dense_features(features):
    return tf.concat([tf.expand_dims(features["size"], 1), features["place"]], axis=1)


def _layer(name, inputs, units, activation=None):
    with tf1.variable_scope(name):
        kernel = tf1.get_variable(
            "kernel", [inputs.shape[1], units], initializer=tf1.glorot_uniform_initializer()
        )
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        outputs = tf.matmul(inputs, kernel) + bias
        return outputs if activation is None else activation(outputs)


def classifier_model_fn(e, features, labels, mode, params):
    """Two layers; metrics, summaries and export outputs by hand."""
    hidden = _layer("hidden", _dense_features(features), params["units"], tf.nn.relu)
    tf1.summary.histogram("hidden", hidden)
    logits = _layer("logits", hidden, params["n_classes"])
    probabilities = tf.nn.softmax(logits)
    predictions = {
        "class_ids": tf.argmax(logits, 1),
        "probabilities": probabilities,
        "best": tf.reduce_max(probabilities, axis=1),
    }
    if mode == e.ModeKeys.PREDICT:
        classes = tf.gather(tf.constant(GRADES), predictions["class_ids"])
        return e.EstimatorSpec(
            mode,
            predictions=predictions,
            export_outputs={
                "serving_default": e.export.ClassificationOutput(probabilities, tf.expand_dims(classes, 1)),
                "scores": e.export.RegressionOutput(predictions["best"]),
                "all": e.export.PredictOutput(predictions),
            },
        )
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf1.metrics.accuracy(labels, predictions["class_ids"])
    if mode == e.ModeKeys.EVAL:
        return e.EstimatorSpec(
            mode,
            predictions=predictions,
            loss=loss,
            eval_metric_ops={
                "accuracy": accuracy,
                "recall_of_high": tf1.metrics.recall(
                    tf.equal(labels, 2), tf.equal(predictions["class_ids"], 2)
                ),
                "size/mean": tf1.metrics.mean(features["size"]),
                "auc": tf1.metrics.auc(tf.equal(labels, 2), probabilities[:, 2]),
            },
        )
    tf1.summary.scalar("accuracy", accuracy[1])
    learning_rate = tf1.train.exponential_decay(
        params["learning_rate"], tf1.train.get_global_step(), 20, 0.8, staircase=True
    )
    tf1.summary.scalar("learning_rate", learning_rate)
    train_op = tf1.train.AdamOptimizer(learning_rate).minimize(loss, tf1.train.get_global_step())
    return e.EstimatorSpec(mode, loss=loss, train_op=train_op)


def regressor_model_fn(e, features, labels, mode, params, config):
    """Embeddings of a word and of its hash, regularization, clipped gradients, averaged weights."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(KINDS), tf.constant(list(range(len(KINDS))), tf.int64)
        ),
        default_value=0,
    )
    with tf1.variable_scope("embeddings", initializer=tf1.truncated_normal_initializer(stddev=0.1)):
        kinds = tf1.get_variable("kind", [len(KINDS), 3])
        tags = tf1.get_variable("tags", [8, 2])
    tag_ids = tf.SparseTensor(
        features["tags"].indices,
        tf.strings.to_hash_bucket_fast(features["tags"].values, 8),
        features["tags"].dense_shape,
    )
    inputs = tf.concat(
        [
            _dense_features(features),
            tf.nn.embedding_lookup(kinds, table.lookup(features["kind"])),
            tf1.nn.safe_embedding_lookup_sparse(tags, tag_ids, combiner="mean"),
        ],
        axis=1,
    )
    prediction = _layer("price", inputs, 1)[:, 0]
    if mode == e.ModeKeys.PREDICT:
        return e.EstimatorSpec(mode, predictions={"price": prediction})
    tf1.losses.mean_squared_error(labels, prediction, weights=features["weight"])
    tf1.add_to_collection(tf1.GraphKeys.REGULARIZATION_LOSSES, params["l2"] * tf.nn.l2_loss(kinds))
    loss = tf1.losses.get_total_loss()
    if mode == e.ModeKeys.EVAL:
        return e.EstimatorSpec(
            mode,
            loss=loss,
            predictions={"price": prediction},
            eval_metric_ops={
                "rmse": tf1.metrics.root_mean_squared_error(labels, prediction),
                "seed": tf1.metrics.mean(tf.cast(config.save_summary_steps, tf.float32)),
            },
        )
    step = tf1.train.get_global_step()
    optimizer = tf1.train.MomentumOptimizer(params["learning_rate"], 0.9, use_nesterov=True)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
    tf1.summary.scalar("gradient_norm", norm)
    update = optimizer.apply_gradients(zip(clipped, variables, strict=True), step)
    average = tf1.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([update]):
        train_op = average.apply(tf1.trainable_variables())
    return e.EstimatorSpec(mode, loss=loss, train_op=train_op)


def head_model_fn(e, features, labels, mode, params):
    """A head, given an optimizer's op, an update of the model's own and a regularization loss."""
    logits = _layer("hidden", _dense_features(features), 4, tf.nn.tanh)
    logits = _layer("logits", logits, 1)
    head = e.BinaryClassHead(weight_column="weight", thresholds=[0.4])
    seen = tf1.get_variable("examples_seen", [], initializer=tf1.zeros_initializer(), trainable=False)
    num_examples = tf.cast(tf.shape(logits)[0], tf.float32)
    kernels = [v for v in tf1.trainable_variables() if "kernel" in v.name]

    def train_op_fn(loss):
        optimizer = tf1.train.RMSPropOptimizer(params["learning_rate"], momentum=0.5)
        return optimizer.minimize(loss, tf1.train.get_global_step())

    is_training = mode == e.ModeKeys.TRAIN
    return head.create_estimator_spec(
        features,
        mode,
        logits,
        labels=labels,
        train_op_fn=train_op_fn,
        update_ops=[seen.assign_add(num_examples)] if is_training else None,
        regularization_losses=[0.01 * tf.nn.l2_loss(kernel) for kernel in kernels],
    )


def _estimator(model_fn, params, e, config):
    # model_fns have the signature that Estimator looks at; only `e` differs.
    if model_fn is regressor_model_fn:

        def with_config(features, labels, mode, params, config):
            return model_fn(e, features, labels, mode, params, config)

        return e.Estimator(with_config, config=config, params=params)

    def without_config(features, labels, mode, params):
        return model_fn(e, features, labels, mode, params)

    return e.Estimator(without_config, config=config, params=params)


def _with_added_metrics(e, config):
    def squares(features, labels, predictions):
        error = tf.cast(labels, tf.float32) - predictions["logistic"][:, 0]
        mean = tf.keras.metrics.Mean(name="brier")
        mean.update_state(tf.square(error))
        return {"brier": mean, "size": tf1.metrics.mean(features["size"])}

    columns = [tf.feature_column.numeric_column("size")]
    return e.add_metrics(e.LinearClassifier(columns, config=config), squares)


PROGRAMS = {
    "custom_classifier": Program(
        dense("grade"),
        functools.partial(
            _estimator, classifier_model_fn, {"units": 4, "n_classes": 3, "learning_rate": 0.02}
        ),
        SERVING_FEATURES,
    ),
    "custom_regressor": Program(
        with_tags("number"),
        functools.partial(_estimator, regressor_model_fn, {"l2": 0.01, "learning_rate": 0.02}),
        SERVING_FEATURES,
    ),
    "custom_head": Program(
        dense("binary"),
        functools.partial(_estimator, head_model_fn, {"learning_rate": 0.01}),
        SERVING_FEATURES,
    ),
    "custom_metrics": Program(
        dense("binary"), _with_added_metrics, {"size": tf.io.FixedLenFeature([1], tf.float32)}
    ),
}
