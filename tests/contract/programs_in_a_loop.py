"""Programs as people wrote them from 2017 on; a session call makes many of their steps."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est

BATCHES = 40


def arrays():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4 * BATCHES, 3)).astype(np.float32)
    word = rng.integers(0, 9, 4 * BATCHES).astype(str)
    return {"x": x, "word": word}, (x.sum(axis=1) > 0).astype(np.int64)


def dataset(input_context=None):
    return tf.data.Dataset.from_tensor_slices(arrays()).batch(4)


def forty_steps(input_context=None):
    return dataset().repeat()


def dense(x, units, name, **options):
    """A layer of variables of TensorFlow 1."""
    with tf1.variable_scope(name):
        init = tf1.glorot_uniform_initializer(seed=3)
        kernel = tf1.get_variable("kernel", [x.shape[-1], units], initializer=init, **options)
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer(), **options)
    return tf.matmul(x, kernel) + bias


def spec(mode, logits, labels, optimizer=None, **options):
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = optimizer or tf1.train.AdamOptimizer(0.05)
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, {"y": logits}, loss, train_op, **options)


def two_layers(optimizer=None, between=tf.nn.relu, **options):
    def model_fn(features, labels, mode):
        hidden = between(dense(features["x"], 5, "hidden", **options))
        return spec(mode, dense(hidden, 2, "out", **options), labels, optimizer and optimizer())

    return model_fn


def decaying():
    rate = tf1.train.exponential_decay(0.5, tf1.train.get_global_step(), 5, 0.7, staircase=True)
    return tf1.train.MomentumOptimizer(rate, 0.9)


def clipped(features, labels, mode):
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, dense(features["x"], 2, "out"))
    variables = tf1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.3)
    train_op = tf1.train.AdagradOptimizer(0.3).apply_gradients(
        zip(gradients, variables, strict=True), tf1.train.get_global_step()
    )
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def batch_norm(hidden):
    mean = tf1.get_variable("mean", [5], initializer=tf1.zeros_initializer(), trainable=False)
    batch_mean, variance = tf.nn.moments(hidden, [0])
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, mean.assign_sub(0.1 * (mean - batch_mean)))
    return tf.nn.relu(tf.nn.batch_normalization(hidden, batch_mean, variance, None, None, 1e-3))


def with_branches(hidden):
    step = tf1.train.get_global_step()
    hidden = tf.cond(step % 3 < 1, lambda: tf.tanh(hidden), lambda: tf.nn.relu(hidden))
    _, result = tf.while_loop(
        lambda i, value: i < tf.cast(step % 4, tf.int32),
        lambda i, value: (i + 1, value * 0.9 + 0.1),
        [tf.constant(0), hidden],
    )
    return result


@tf.function
def traced(hidden):
    total = tf.zeros_like(hidden)
    for index in tf.range(3):
        total += hidden * tf.cast(index, tf.float32)
    return tf.nn.relu(total)


def printing(hidden):
    printed = tf.print("mean", tf.reduce_mean(hidden), output_stream="file:///dev/null")
    with tf.control_dependencies([printed]):
        checked = tf1.Print(hidden, [tf.shape(hidden)])
    with tf.control_dependencies([tf1.assert_less(checked, 1e6)]):
        return tf.nn.relu(checked)


def calls_python(hidden):
    scale = tf1.py_func(lambda value: np.float32(1 + value.max()), [hidden], tf.float32)
    return hidden * tf.reshape(scale, [])


def calls_numpy(hidden):
    scale = tf.numpy_function(lambda value: np.float32(1 + value.max()), [hidden], tf.float32)
    return hidden * tf.reshape(scale, [])


def dropout_with_seed(hidden):
    return tf1.nn.dropout(tf.nn.relu(hidden), rate=0.4, seed=11)


def with_accumulated_state(features, labels, mode):
    """Keeps a sum of the values it has seen in variables that are no weights."""
    result = two_layers()(features, labels, mode)
    seen = tf1.get_local_variable("seen", [], initializer=tf1.zeros_initializer())
    with tf.control_dependencies([result.train_op]):
        add = seen.assign_add(tf.reduce_sum(features["x"]))
        kept = tf1.get_variable("kept", [], initializer=tf1.zeros_initializer())
        with tf.control_dependencies([add]):
            keep = kept.assign(seen.read_value() * 2)
    return result._replace(train_op=tf.group(result.train_op, keep))


def digits():
    """A table of numbers by their text; 5 for others."""
    initializer = tf.lookup.KeyValueTensorInitializer([str(n) for n in range(5)], tf.range(5, dtype=tf.int64))
    return tf.lookup.StaticHashTable(initializer, 5)


def with_table(features, labels, mode):
    one_hot = tf.one_hot(digits().lookup(features["word"]), 6)
    logits = dense(tf.concat([features["x"], one_hot], axis=1), 2, "out")
    return spec(mode, logits, labels, tf1.train.FtrlOptimizer(0.3))


def with_scaffold(features, labels, mode):
    result = two_layers()(features, labels, mode)
    local = tf1.get_local_variable("local", [], initializer=tf1.zeros_initializer())
    init = tf.group(tf1.local_variables_initializer(), tf1.tables_initializer(), local.assign(3.0))
    scaffold = tf1.train.Scaffold(saver=tf1.train.Saver(max_to_keep=50), local_init_op=init)
    return result._replace(scaffold=scaffold)


def columns():
    column = tf.feature_column
    words = column.categorical_column_with_vocabulary_list("word", [*"0123456"], num_oov_buckets=2)
    return [column.numeric_column("x", [3]), column.embedding_column(words, 4)], [words]


def dnn(config):
    return est.DNNClassifier([6, 4], columns()[0], optimizer="Adam", config=config)


def dnn_with_dropout(config):
    return est.DNNClassifier([6, 4], columns()[0], dropout=0.3, batch_norm=True, config=config)


def wide_and_deep(config):
    deep, wide = columns()
    return est.DNNLinearCombinedClassifier(
        linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[6], config=config
    )


def rnn(cell_type):
    ids = tf.feature_column.sequence_categorical_column_with_identity("ids", 3)
    columns = [tf.feature_column.embedding_column(ids, 4)]
    return lambda config: est.experimental.RNNClassifier(
        columns, units=[6, 4], cell_type=cell_type, config=config
    )


def keras_model(config):
    import keras

    keras.utils.set_random_seed(5)
    inputs = keras.Input((3,), name="x")
    hidden = keras.layers.Dense(6, activation="relu")(inputs)
    hidden = keras.layers.Dropout(0.3, seed=3)(keras.layers.BatchNormalization()(hidden))
    model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return est.model_to_estimator(model, config=config)


# Inputs


def only_x(input_context=None):
    return forty_steps().map(lambda features, label: ({"x": features["x"]}, label))


def sequences(input_context=None):
    """Sequences of three steps; -1 is padding."""
    return forty_steps().map(
        lambda features, label: ({"ids": tf.cast(features["x"] * 2, tf.int64) % 4 - 1}, label)
    )


def one_shot():
    return tf1.data.make_one_shot_iterator(forty_steps()).get_next()


def initialized_in_scaffold():
    iterator = tf1.data.make_initializable_iterator(forty_steps())
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def from_a_queue():
    features, labels = arrays()
    x, label = tf1.train.slice_input_producer([features["x"], labels], shuffle=False)
    x, label = tf1.train.batch([x, label], 4)
    return {"x": x}, label


def constant_tensors():
    features, labels = arrays()
    return {"x": tf.constant(features["x"])}, tf.constant(labels)


def estimator_of(model_fn):
    return lambda config: est.Estimator(model_fn, config=config)


# Name -> (estimator of a config, input_fn, the reason why no copy of the step can be made).
IN_A_LOOP = {
    "dnn": (dnn, forty_steps),
    "wide_and_deep": (wide_and_deep, forty_steps),
    "keras_model": (keras_model, only_x),
    "lstm": (rnn("lstm"), sequences),
    "gru": (rnn("gru"), sequences),
    "adam": (estimator_of(two_layers()), forty_steps),
    "decaying_momentum": (estimator_of(two_layers(decaying)), forty_steps),
    "rms_prop": (estimator_of(two_layers(lambda: tf1.train.RMSPropOptimizer(0.02))), forty_steps),
    "clipped_adagrad": (estimator_of(clipped), forty_steps),
    "table_and_ftrl": (estimator_of(with_table), forty_steps),
    "batch_norm": (estimator_of(two_layers(between=batch_norm)), forty_steps),
    "branches": (estimator_of(two_layers(between=with_branches)), forty_steps),
    "tf_function": (estimator_of(two_layers(between=traced)), forty_steps),
    "printing": (estimator_of(two_layers(between=printing)), forty_steps),
    "accumulated_state": (estimator_of(with_accumulated_state), forty_steps),
    "scaffold": (estimator_of(with_scaffold), forty_steps),
    "one_shot": (estimator_of(two_layers()), one_shot),
    "initialized_in_scaffold": (estimator_of(two_layers()), initialized_in_scaffold),
    "constant_tensors": (estimator_of(two_layers()), constant_tensors),
}
ONE_BY_ONE = {
    "dnn_with_dropout": (dnn_with_dropout, forty_steps, "random numbers"),
    "dropout_with_seed": (estimator_of(two_layers(between=dropout_with_seed)), forty_steps, "random numbers"),
    "py_func": (estimator_of(two_layers(between=calls_python)), forty_steps, "PyFunc"),
    "numpy_function": (estimator_of(two_layers(between=calls_numpy)), forty_steps, "PyFunc"),
    "old_variables": (estimator_of(two_layers(use_resource=False)), forty_steps, "variable of TensorFlow 1"),
    "queue": (estimator_of(two_layers()), from_a_queue, "Queue"),
}
