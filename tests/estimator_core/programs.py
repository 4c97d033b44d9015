"""Parts of the programs that many tests train."""

import os

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.oracle import observe


def zeros(name="weight", shape=(), **options):
    """A variable that starts at 0."""
    return tf1.get_variable(name, shape, initializer=tf1.zeros_initializer(), **options)


def descent(loss, rate=0.1):
    """A training step of gradient descent."""
    return tf1.train.GradientDescentOptimizer(rate).minimize(loss, tf1.train.get_global_step())


def values_of(estimator):
    """The value of each variable of the newest checkpoint, by name."""
    return {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}


def assert_same(found, expected, **tolerance):
    """Compares values by name, exactly unless a tolerance is given."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, **{"rtol": 0, **tolerance}, err_msg=name)


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


def batch_of(features, labels=None, repeat=1):
    """An input_fn of one batch, or of the same one several times; None repeats it for ever."""
    batch = features if labels is None else (features, labels)
    return lambda: tf.data.Dataset.from_tensors(batch).repeat(repeat)


def saved_steps(model_dir):
    """The steps of the checkpoints that a model_dir lists."""
    state = tf.train.get_checkpoint_state(str(model_dir))
    return [int(path.rpartition("-")[2]) for path in state.all_model_checkpoint_paths]


def checkpoints(model_dir):
    """The steps of the existing checkpoints."""
    names = [name for name in os.listdir(model_dir) if name.endswith(".index")]
    return sorted(int(name.removeprefix("model.ckpt-").removesuffix(".index")) for name in names)


class AfterEachRun(est.SessionRunHook):
    """Calls a function with the session after each of its runs."""

    def __init__(self, function):
        self.function = function

    def after_run(self, run_context, run_values):
        self.function(run_context.session)


class Calls(est.SessionRunHook):
    """Counts the runs."""

    calls = 0

    def after_run(self, run_context, run_values):
        self.calls += 1


class Fetching(est.SessionRunHook):
    """Keeps the values of what a function selects of the graph, by default the last loss, in each run."""

    def __init__(self, select=lambda graph: graph.get_collection("losses")[-1]):
        self.select, self.values = select, []

    def before_run(self, run_context):
        return est.SessionRunArgs(self.select(run_context.session.graph))

    def after_run(self, run_context, run_values):
        self.values.append(run_values.results)


class Recorder(est.Exporter):
    """Notes its calls: the step, and whether it is the final one; the losses, where to, which checkpoint."""

    name = None

    def __init__(self, name="recorder"):
        self.name, self.calls, self.losses, self.paths = name, [], [], []

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.calls.append((int(eval_result["global_step"]), is_the_final_export))
        self.losses.append(float(eval_result["loss"]))
        self.paths.append((export_path, checkpoint_path))
        return f"{self.name}-{self.calls[-1][0]}".encode()


def example(**features):
    """A serialized tf.Example; a feature is a value, a list of values, or None, which leaves it out."""
    made = tf.train.Example()
    for name, values in features.items():
        feature = made.features.feature[name]
        for value in values if isinstance(values, list) else [] if values is None else [values]:
            if isinstance(value, str | bytes):
                feature.bytes_list.value.append(tf.compat.as_bytes(value))
            else:
                (feature.int64_list if isinstance(value, int) else feature.float_list).value.append(value)
    return made.SerializeToString()


def counting(mode, loss, **parts):
    """A spec whose training step counts, and does nothing else."""
    return est.EstimatorSpec(mode, loss=loss, train_op=tf1.train.get_global_step().assign_add(1), **parts)
