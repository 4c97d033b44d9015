"""A small model whose variables start from constants, and ways to observe it."""

import os

import numpy as np
import tensorflow as tf

from tests.oracle.programs.data import SIZE, dense

tf1 = tf.compat.v1

RECEIVER_FEATURES = {"size": tf.io.FixedLenFeature([1], tf.float32)}

train_input_fn = dense("number")()
eval_input_fn = dense("number")(repeat=1)


def run_config(e, model_dir, **config):
    """Returns a RunConfig whose sessions run one operation after the other.

    Otherwise a hook that reads the global step may read it before or after the step's update.
    """
    one_thread = tf1.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=1)
    return e.RunConfig(model_dir=model_dir, session_config=one_thread, **config)


def regressor(e, model_dir, **config):
    """Returns a LinearRegressor of one feature; `config` goes to its RunConfig."""
    config = run_config(e, model_dir, save_summary_steps=1, **config)
    return e.LinearRegressor([SIZE], optimizer="SGD", config=config)


def receiver_fn(e):
    """Returns the receiver of examples with that feature."""
    return e.export.build_parsing_serving_input_receiver_fn(RECEIVER_FEATURES)


def line_model_fn(e, spec_arguments=None):
    """Returns a model_fn: a line through two constants, with further arguments of its spec.

    Args:
        e: The module with the API's names.
        spec_arguments: `spec_arguments(loss)` returns keyword arguments of each EstimatorSpec.
    """

    def model_fn(features, labels, mode):
        slope = tf1.get_variable("slope", [], initializer=tf1.constant_initializer(0.5))
        offset = tf1.get_variable("offset", [], initializer=tf1.constant_initializer(-0.1))
        value = slope * features["size"] + offset
        predictions = {"value": value, "double": 2.0 * value}
        if mode == e.ModeKeys.PREDICT:
            more = spec_arguments(None) if spec_arguments else {}
            return e.EstimatorSpec(mode, predictions=predictions, **more)
        loss = tf.reduce_mean(tf.square(value - labels))
        optimizer = tf1.train.GradientDescentOptimizer(0.05)
        return e.EstimatorSpec(
            mode,
            predictions=predictions,
            loss=loss,
            train_op=optimizer.minimize(loss, tf1.train.get_global_step()),
            eval_metric_ops={"mae": tf1.metrics.mean_absolute_error(labels, value)},
            **(spec_arguments(loss) if spec_arguments else {}),
        )

    return model_fn


def plain(values):
    """Returns metrics, predictions or variables as plain data."""
    if isinstance(values, dict):
        return {str(key): plain(value) for key, value in values.items()}
    values = np.asarray(values)
    if values.dtype.kind in "OS":
        values = values.astype(str)
    return values.tolist()


def variables_of(estimator):
    """Returns the variables of the newest checkpoint."""
    return {name: plain(estimator.get_variable_value(name)) for name in estimator.get_variable_names()}


def files_in(directory, suffix=""):
    """Returns the sorted names with this ending in a directory; none when it does not exist."""
    if not os.path.isdir(directory):
        return []
    return sorted(name for name in os.listdir(directory) if name.endswith(suffix))


def error_of(function, *args, **kwargs):
    """Returns the type of the error that a call raises, as text; None when there is none."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return None
