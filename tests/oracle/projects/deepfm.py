"""DeepFM for click-through rates, over libsvm files, with one of several optimizers.

Each line of the data is a label, then index:value for each field.
"""

import glob
import os
import random

import tensorflow.compat.v1 as tf
from tensorflow.python.training import moving_averages

tf.disable_v2_behavior()

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer("feature_size", 40, "Number of features")
tf.app.flags.DEFINE_integer("field_size", 5, "Number of fields")
tf.app.flags.DEFINE_integer("embedding_size", 4, "Embedding size")
tf.app.flags.DEFINE_integer("num_epochs", 2, "Number of epochs")
tf.app.flags.DEFINE_integer("batch_size", 16, "Number of batch size")
tf.app.flags.DEFINE_integer("log_steps", 4, "save summary every steps")
tf.app.flags.DEFINE_float("learning_rate", 0.01, "learning rate")
tf.app.flags.DEFINE_float("l2_reg", 0.001, "L2 regularization")
tf.app.flags.DEFINE_list("optimizers", "Adam,ftrl", "one run for each")
tf.app.flags.DEFINE_string("deep_layers", "8,4", "deep layers")
tf.app.flags.DEFINE_string("dropout", "0.9,0.8", "dropout rate")
tf.app.flags.DEFINE_boolean("batch_norm", True, "perform batch normalization (True or False)")
tf.app.flags.DEFINE_float("batch_norm_decay", 0.9, "decay for the moving average")
tf.app.flags.DEFINE_string("data_dir", "data", "data dir")
tf.app.flags.DEFINE_string("model_dir", "model", "check point dir")
tf.app.flags.DEFINE_string("servable_model_dir", "servable", "export servable model")


def write_libsvm(path, lines, seed):
    rng = random.Random(seed)
    per_field = FLAGS.feature_size // FLAGS.field_size
    with open(path, "w") as output:
        for _ in range(lines):
            chosen = [rng.randrange(per_field) for _ in range(FLAGS.field_size)]
            values = [round(rng.uniform(0.5, 1.5), 3) for _ in chosen]
            label = int(sum(chosen) + rng.uniform(-4, 4) > 3.5 * FLAGS.field_size)
            fields = [
                f"{field * per_field + index}:{value}"
                for field, (index, value) in enumerate(zip(chosen, values, strict=True))
            ]
            output.write(f"{label} {' '.join(fields)}\n")


def input_fn(filenames, batch_size=32, num_epochs=1, perform_shuffle=False):
    tf.logging.info("Parsing %s", filenames)

    def decode_libsvm(line):
        columns = tf.string_split([line], " ")
        labels = tf.string_to_number(columns.values[0], out_type=tf.float32)
        splits = tf.string_split(columns.values[1:], ":")
        id_vals = tf.reshape(splits.values, splits.dense_shape)
        feat_ids, feat_vals = tf.split(id_vals, num_or_size_splits=2, axis=1)
        feat_ids = tf.string_to_number(feat_ids, out_type=tf.int32)
        feat_vals = tf.string_to_number(feat_vals, out_type=tf.float32)
        return {"feat_ids": feat_ids, "feat_vals": feat_vals}, labels

    dataset = tf.data.TextLineDataset(filenames).map(decode_libsvm, num_parallel_calls=2).prefetch(100)
    if perform_shuffle:
        dataset = dataset.shuffle(buffer_size=32, seed=3)
    dataset = dataset.repeat(num_epochs).batch(batch_size)
    iterator = dataset.make_one_shot_iterator()
    batch_features, batch_labels = iterator.get_next()
    return batch_features, batch_labels


def l2_regularizer(scale):
    return lambda weights: tf.multiply(scale, tf.nn.l2_loss(weights), name="l2_regularizer")


def fully_connected(inputs, num_outputs, scope, seed, activation_fn=tf.nn.relu):
    with tf.variable_scope(scope):
        weights = tf.get_variable(
            "weights",
            [inputs.shape[1].value, num_outputs],
            initializer=tf.glorot_uniform_initializer(seed=seed),
            regularizer=l2_regularizer(FLAGS.l2_reg),
        )
        biases = tf.get_variable("biases", [num_outputs], initializer=tf.constant_initializer(0.1))
        outputs = tf.nn.xw_plus_b(inputs, weights, biases)
        return outputs if activation_fn is None else activation_fn(outputs)


def batch_norm_layer(x, train_phase, scope_bn):
    with tf.variable_scope(scope_bn):
        size = x.shape[1:]
        gamma = tf.get_variable("gamma", size, initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", size, initializer=tf.zeros_initializer())
        moving_mean = tf.get_variable(
            "moving_mean", size, initializer=tf.zeros_initializer(), trainable=False
        )
        moving_variance = tf.get_variable(
            "moving_variance", size, initializer=tf.ones_initializer(), trainable=False
        )
        if not train_phase:
            return tf.nn.batch_normalization(x, moving_mean, moving_variance, beta, gamma, 1e-3)
        mean, variance = tf.nn.moments(x, [0])
        for average, value in ((moving_mean, mean), (moving_variance, variance)):
            update = moving_averages.assign_moving_average(
                average, value, FLAGS.batch_norm_decay, zero_debias=False
            )
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def optimizer_of(name, learning_rate):
    if name == "Adam":
        return tf.train.AdamOptimizer(learning_rate=learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-3)
    if name == "Adagrad":
        return tf.train.AdagradOptimizer(learning_rate=learning_rate, initial_accumulator_value=0.1)
    if name == "Momentum":
        return tf.train.MomentumOptimizer(learning_rate=learning_rate, momentum=0.95)
    if name == "ftrl":
        return tf.train.FtrlOptimizer(learning_rate, l1_regularization_strength=0.001)
    if name == "RMSProp":
        return tf.train.RMSPropOptimizer(learning_rate, momentum=0.5, epsilon=1e-2, centered=True)
    raise ValueError(f"Unknown optimizer {name}")


def model_fn(features, labels, mode, params):
    """Builds the model for all three modes."""
    field_size = params["field_size"]
    embedding_size = params["embedding_size"]
    layers = list(map(int, params["deep_layers"].split(",")))
    dropout = list(map(float, params["dropout"].split(",")))
    train_phase = mode == tf.estimator.ModeKeys.TRAIN

    fm_bias = tf.get_variable(name="fm_bias", shape=[1], initializer=tf.constant_initializer(0.0))
    fm_w = tf.get_variable(
        name="fm_w",
        shape=[params["feature_size"]],
        initializer=tf.glorot_normal_initializer(seed=1),
        regularizer=l2_regularizer(params["l2_reg"]),
    )
    fm_v = tf.get_variable(
        name="fm_v",
        shape=[params["feature_size"], embedding_size],
        initializer=tf.glorot_normal_initializer(seed=2),
        regularizer=l2_regularizer(params["l2_reg"]),
        use_resource=False,
    )
    feat_ids = tf.reshape(features["feat_ids"], shape=[-1, field_size])
    feat_vals = tf.reshape(features["feat_vals"], shape=[-1, field_size])

    with tf.variable_scope("First-order"):
        feat_wgts = tf.nn.embedding_lookup(fm_w, feat_ids)
        y_w = tf.reduce_sum(tf.multiply(feat_wgts, feat_vals), 1)

    with tf.variable_scope("Second-order"):
        embeddings = tf.nn.embedding_lookup(fm_v, feat_ids)
        embeddings = tf.multiply(embeddings, tf.reshape(feat_vals, shape=[-1, field_size, 1]))
        sum_square = tf.square(tf.reduce_sum(embeddings, 1))
        square_sum = tf.reduce_sum(tf.square(embeddings), 1)
        y_v = 0.5 * tf.reduce_sum(tf.subtract(sum_square, square_sum), 1)

    with tf.variable_scope("Deep-part"):
        deep_inputs = tf.reshape(embeddings, shape=[-1, field_size * embedding_size])
        for i, units in enumerate(layers):
            deep_inputs = fully_connected(deep_inputs, units, f"mlp{i}", seed=10 + i)
            if FLAGS.batch_norm:
                deep_inputs = batch_norm_layer(deep_inputs, train_phase, f"bn_{i}")
            if train_phase:
                deep_inputs = tf.nn.dropout(deep_inputs, keep_prob=dropout[i], seed=20 + i)
        y_deep = fully_connected(deep_inputs, 1, "deep_out", seed=30, activation_fn=tf.identity)
        y_d = tf.reshape(y_deep, shape=[-1])

    with tf.variable_scope("DeepFM-out"):
        y = fm_bias * tf.ones_like(y_d, dtype=tf.float32) + y_w + y_v + y_d
        pred = tf.sigmoid(y)

    predictions = {"prob": pred}
    export_outputs = {
        tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: (
            tf.estimator.export.PredictOutput(predictions)
        )
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=export_outputs)

    cross_entropy = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=y, labels=labels))
    loss = cross_entropy + tf.reduce_sum(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    tf.summary.scalar("cross_entropy", cross_entropy)
    tf.summary.histogram("prob", pred)
    eval_metric_ops = {
        "auc": tf.metrics.auc(labels, pred),
        "log_loss": tf.metrics.mean(cross_entropy),
        "ctr": tf.metrics.mean(labels),
    }
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(
            mode, predictions=predictions, loss=loss, eval_metric_ops=eval_metric_ops
        )

    optimizer = optimizer_of(params["optimizer"], params["learning_rate"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


def run(optimizer, tr_files, va_files, te_files):
    model_dir = os.path.join(FLAGS.model_dir, optimizer)
    model_params = {
        "field_size": FLAGS.field_size,
        "feature_size": FLAGS.feature_size,
        "embedding_size": FLAGS.embedding_size,
        "learning_rate": FLAGS.learning_rate,
        "l2_reg": FLAGS.l2_reg,
        "deep_layers": FLAGS.deep_layers,
        "dropout": FLAGS.dropout,
        "optimizer": optimizer,
    }
    config = tf.estimator.RunConfig(tf_random_seed=8, save_checkpoints_steps=16).replace(
        session_config=tf.ConfigProto(device_count={"GPU": 0, "CPU": 1}),
        log_step_count_steps=FLAGS.log_steps,
        save_summary_steps=FLAGS.log_steps,
    )
    deepfm = tf.estimator.Estimator(
        model_fn=model_fn, model_dir=model_dir, params=model_params, config=config
    )
    train_spec = tf.estimator.TrainSpec(
        input_fn=lambda: input_fn(tr_files, FLAGS.batch_size, FLAGS.num_epochs, perform_shuffle=True),
        max_steps=1000,
    )
    eval_spec = tf.estimator.EvalSpec(
        input_fn=lambda: input_fn(va_files, num_epochs=1, batch_size=FLAGS.batch_size),
        steps=None,
        start_delay_secs=0,
        throttle_secs=0,
    )
    tf.estimator.train_and_evaluate(deepfm, train_spec, eval_spec)
    metrics = deepfm.evaluate(lambda: input_fn(va_files, batch_size=7), steps=3, name="some")
    preds = deepfm.predict(
        input_fn=lambda: input_fn(te_files, num_epochs=1, batch_size=FLAGS.batch_size), predict_keys="prob"
    )
    feature_spec = {
        "feat_ids": tf.placeholder(tf.int64, shape=[None, FLAGS.field_size], name="feat_ids"),
        "feat_vals": tf.placeholder(tf.float32, shape=[None, FLAGS.field_size], name="feat_vals"),
    }
    serving_input_receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(feature_spec)
    exported = deepfm.export_savedmodel(
        os.path.join(FLAGS.servable_model_dir, optimizer), serving_input_receiver_fn
    )
    return {
        "metrics": {name: float(value) for name, value in sorted(metrics.items())},
        "predictions": [float(pred["prob"]) for pred in preds],
        "global_step": int(deepfm.get_variable_value("global_step")),
        "fm_bias": deepfm.get_variable_value("fm_bias").tolist(),
        "served": serve(exported),
    }


def serve(export_dir):
    """Asks the exported model in a session of its own."""
    with tf.Session(graph=tf.Graph()) as sess:
        meta_graph = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], export_dir)
        signature = meta_graph.signature_def["serving_default"]
        feed = {
            signature.inputs["feat_ids"].name: [[0, 9, 18, 27, 36]],
            signature.inputs["feat_vals"].name: [[1.0, 0.5, 0.75, 1.25, 1.5]],
        }
        return sess.run(signature.outputs["prob"].name, feed).tolist()


def main():
    tf.logging.set_verbosity(tf.logging.INFO)
    FLAGS(["deepfm.py"])
    os.makedirs(FLAGS.data_dir)
    for name, lines, seed in (("tr1", 120, 1), ("tr2", 70, 2), ("va", 50, 3), ("te", 10, 4)):
        write_libsvm(os.path.join(FLAGS.data_dir, f"{name}.libsvm"), lines, seed)
    tr_files = sorted(glob.glob(f"{FLAGS.data_dir}/tr*libsvm"))
    va_files = glob.glob(f"{FLAGS.data_dir}/va*libsvm")
    te_files = glob.glob(f"{FLAGS.data_dir}/te*libsvm")
    return {name: run(name, tr_files, va_files, te_files) for name in FLAGS.optimizers}
