"""Parts of the programs that many tests train."""

import tensorflow as tf

import estimator_core as est
from tests.oracle import observe

tf1 = tf.compat.v1


def zeros(name="weight", shape=(), **options):
    """A variable that starts at 0."""
    return tf1.get_variable(name, shape, initializer=tf1.zeros_initializer(), **options)


def descent(loss, rate=0.1):
    """A training step of gradient descent."""
    return tf1.train.GradientDescentOptimizer(rate).minimize(loss, tf1.train.get_global_step())


def values_of(estimator):
    """The value of each variable of the newest checkpoint, by name."""
    return {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}


def weight_model_fn(features, labels, mode, params):
    """prediction = weight * x, loss = mean((prediction - label)^2)."""
    predictions = zeros("weight") * features["x"]
    if mode == est.ModeKeys.PREDICT:
        return est.EstimatorSpec(mode, predictions={"y": predictions})
    loss = tf.reduce_mean(tf.square(predictions - labels))
    return est.EstimatorSpec(
        mode,
        predictions={"y": predictions},
        loss=loss,
        train_op=descent(loss, params.get("learning_rate", 0.01)),
        eval_metric_ops={"mae": tf1.metrics.mean_absolute_error(labels, predictions)},
    )


def scalars_of(folder):
    """The values of the summaries in a folder's event files: {tag: {step: value}}."""
    found = {}
    for event in observe.events_of(str(folder)):
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def log_model_fn(features, labels, mode):
    """loss = log(x), which is NaN for a negative x."""
    loss = tf.reduce_sum(tf.math.log(features["x"]), name="log_of_x")
    with tf.control_dependencies([loss]):
        return est.EstimatorSpec(mode, loss=loss, train_op=tf1.train.get_global_step().assign_add(1))


def examples(*values):
    """An input_fn of examples x, one by one, whose labels are 0."""
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": list(values)}, [0.0] * len(values)))


def example(**features):
    """A serialized tf.Example; a feature is a value or a list of values."""
    made = tf.train.Example()
    for name, values in features.items():
        values = values if isinstance(values, list) else [values]
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(values[0])]
        getattr(made.features.feature[name], kind).value.extend(values)
    return made.SerializeToString()


def counting(mode, loss, **parts):
    """A spec whose training step counts, and does nothing else."""
    return est.EstimatorSpec(mode, loss=loss, train_op=tf1.train.get_global_step().assign_add(1), **parts)
