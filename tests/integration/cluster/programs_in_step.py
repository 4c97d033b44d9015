"""Programs of the tasks of clusters that train in step: functions that a new process can import."""

import json
import os
import time

import numpy as np
import tensorflow as tf

import estimator_core as est
from tests.integration.cluster.programs import Note, NoteSteps, files, task_name, wait_until

tf1 = tf.compat.v1

NUM_STEPS = 6
EXAMPLES = 36  # 6 steps of 6 examples


def data(input_context=None):
    """36 examples; a worker's batches are its part of the batches of one device."""
    features = np.random.RandomState(5).normal(size=[EXAMPLES, 3]).astype(np.float32)
    labels = features @ np.float32([[1.0], [-2.0], [0.5]]) + 0.25
    workers, index = 1, 0
    if input_context is not None:
        workers, index = input_context.num_input_pipelines, input_context.input_pipeline_id
        assert input_context.num_replicas_in_sync == workers
    whole = EXAMPLES // NUM_STEPS
    part = whole // workers
    features = features.reshape([NUM_STEPS, workers, part, 3])[:, index].reshape([-1, 3])
    labels = labels.reshape([NUM_STEPS, workers, part, 1])[:, index].reshape([-1, 1])
    return tf.data.Dataset.from_tensor_slices(({"x": features}, labels)).batch(part)


def custom_model_fn(features, labels, mode, params):
    """Two layers from random initial values, Adam: its slots must stay the same in all workers too."""
    hidden = tf.nn.tanh(features["x"] @ tf1.get_variable("hidden", [3, 4]))
    outputs = hidden @ tf1.get_variable("outputs", [4, 1])
    loss = tf.reduce_mean(tf.square(outputs - labels))
    tf1.summary.scalar("mean_output", tf.reduce_mean(outputs))
    train_op = tf1.train.AdamOptimizer(0.05).minimize(loss, tf1.train.get_global_step())
    hooks = chief_hooks = []
    if params["notes"]:
        hooks = [Note(os.path.join(params["notes"], "training_hook"))]
        chief_hooks = [Note(os.path.join(params["notes"], "chief_hook"))]
    return est.EstimatorSpec(
        mode, outputs, loss, train_op, training_hooks=hooks, training_chief_hooks=chief_hooks
    )


def normalized_model_fn(features, labels, mode):
    """Batch normalization, whose moving averages are over the batches of all workers."""
    layer = tf.keras.layers.BatchNormalization(momentum=0.5)
    outputs = layer(features["x"], training=mode == est.ModeKeys.TRAIN)
    weight = tf1.get_variable("weight", [3, 1], initializer=tf1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(outputs @ weight - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step(), tf1.trainable_variables()
    )
    return est.EstimatorSpec(mode, outputs, loss, train_op)


def custom(config, notes=None):
    return est.Estimator(custom_model_fn, config=config, params={"notes": notes})


def canned(config, notes=None):
    del notes
    columns = [tf.feature_column.numeric_column("x", [3])]
    return est.DNNRegressor([4], columns, optimizer="Adagrad", config=config)


def normalized(config, notes=None):
    del notes
    return est.Estimator(normalized_model_fn, config=config)


MODELS = {"custom": custom, "canned": canned}


class Record(tf1.train.SessionRunHook):
    """Records the loss of each step, and the variables of this task at the end."""

    def __init__(self):
        self.losses = []
        self.variables = {}

    def begin(self):
        self._loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[0]
        self._read = {
            variable.name: getattr(variable, "values", [variable])[0] for variable in tf1.global_variables()
        }

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))

    def end(self, session):
        self.variables = session.run(self._read)


def run_config(model_dir, strategy=None, **settings):
    return est.RunConfig(
        model_dir=model_dir,
        save_checkpoints_steps=4,
        save_summary_steps=2,
        train_distribute=strategy,
        **settings,
    )


def train_twice(estimator, input_fn, directory):
    """Trains by `Estimator.train` in two goes; returns the losses and the last variables of this task."""
    record = Record()
    estimator.train(input_fn, hooks=[record], max_steps=2)
    estimator.train(lambda input_context=None: input_fn(input_context).skip(2), hooks=[record])
    np.savez(os.path.join(directory, f"{task_name()}.npz"), losses=record.losses, **record.variables)


def train_in_step(root):
    """Trains each model, in a directory of its own."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf1.logging.set_verbosity(tf1.logging.INFO)
    for name, make in MODELS.items():
        notes = os.path.join(root, f"{name}_notes")
        os.makedirs(notes, exist_ok=True)
        estimator = make(run_config(os.path.join(root, name), strategy), notes)
        train_twice(estimator, data, notes)


def train_and_evaluate_in_step(root, is_listed):
    """Trains by `train_and_evaluate`.

    If TF_CONFIG lists the evaluator, it makes a strategy as the other tasks do; else it has none.
    """
    if is_listed:
        tf_config = json.loads(os.environ["TF_CONFIG"])
        tf_config["cluster"]["evaluator"] = ["127.0.0.1:9"]
        os.environ["TF_CONFIG"] = json.dumps(tf_config)
    has_none = task_name() == "evaluator 0" and not is_listed
    strategy = None if has_none else tf.distribute.MultiWorkerMirroredStrategy()
    estimator = canned(run_config(os.path.join(root, "model"), strategy))
    return est.train_and_evaluate(
        estimator,
        est.TrainSpec(lambda input_context=None: data(input_context).repeat(), max_steps=9),
        est.EvalSpec(data, steps=None, start_delay_secs=0, throttle_secs=0),
    )


def train_in_graph_mode(root):
    """Trains in a program that has disabled eager execution, with the strategy of TensorFlow 1."""
    tf1.disable_eager_execution()
    strategy = tf1.distribute.experimental.MultiWorkerMirroredStrategy()
    estimator = canned(run_config(os.path.join(root, "model"), strategy))
    record = Record()
    est.train_and_evaluate(estimator, est.TrainSpec(data, max_steps=100, hooks=[record]), est.EvalSpec(data))
    return record.losses, record.variables


def train_normalized(root):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    record = Record()
    estimator = normalized(run_config(os.path.join(root, "model"), strategy))
    estimator.train(data, hooks=[record])
    return record.losses, record.variables


def warm_started(config, path):
    """Starts from the weights of another training, with new slots of the optimizer."""
    settings = est.WarmStartSettings(path, vars_to_warm_start=["hidden", "outputs"])
    return est.Estimator(custom_model_fn, config=config, params={"notes": None}, warm_start_from=settings)


def train_warm_started(root, path):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    record = Record()
    estimator = warm_started(run_config(os.path.join(root, "model"), strategy), path)
    estimator.train(data, hooks=[record])
    return record.losses, record.variables


# For the tests of endings


def stop_early(root):
    """The chief stops all after the second look; returns the steps of this task."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf1.logging.set_verbosity(tf1.logging.INFO)
    estimator = canned(run_config(os.path.join(root, "model"), strategy))
    looks = []
    stop = est.experimental.make_early_stopping_hook(
        estimator, lambda: looks.append(1) or len(looks) == 2, run_every_secs=None, run_every_steps=3
    )
    record = Record()
    est.train_and_evaluate(
        estimator,
        est.TrainSpec(lambda input_context: data(input_context).repeat(), 50, hooks=[record, stop]),
        est.EvalSpec(data),
    )
    with open(os.path.join(root, f"steps.{task_name()}"), "w") as file:
        file.write(str(len(record.losses)))
    return len(looks)


def train_unequal_inputs(root):
    """Worker 1 has batches for two steps, the others for six."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf1.logging.set_verbosity(tf1.logging.INFO)
    estimator = canned(run_config(os.path.join(root, "model"), strategy))
    few = 2 if task_name() == "worker 1" else 6
    estimator.train(lambda input_context: data(input_context).take(few))
    return estimator.get_variable_value("global_step")


def ftrl_model_fn(features, labels, mode):
    """A linear model; Ftrl makes weights that are NaN 0."""
    weight = tf1.get_variable("weight", [3, 1], initializer=tf1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features["x"] @ weight - labels))
    train_op = tf1.train.FtrlOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train_until_nan(root):
    """Writes at which step the loss was NaN: one number of the fourth batch of worker 1 is."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    bad = 3 if task_name() == "worker 1" else -1

    def spoil(index, batch):
        features, labels = batch
        return {"x": tf.where(tf.equal(index, bad), np.nan, features["x"])}, labels

    estimator = est.Estimator(ftrl_model_fn, config=run_config(f"{root}/model", strategy))
    try:
        estimator.train(lambda input_context: data(input_context).enumerate().map(spoil))
    except est.NanLossDuringTrainingError as error:
        with open(os.path.join(root, f"nan.{task_name()}"), "w") as file:
            file.write(str(error.global_step))


def train_for_long(root):
    """Trains until something ends it."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf1.logging.set_verbosity(tf1.logging.INFO)
    estimator = canned(run_config(os.path.join(root, "model"), strategy))
    est.train_and_evaluate(
        estimator,
        est.TrainSpec(lambda input_context: data(input_context).repeat(), 10**6, hooks=[NoteSteps(root)]),
        est.EvalSpec(data),
    )


def train_different_models(root):
    """Worker 1 has one layer more."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    hidden = [4, 4] if task_name() == "worker 1" else [4]
    columns = [tf.feature_column.numeric_column("x", [3])]
    config = run_config(os.path.join(root, "model"), strategy)
    est.DNNRegressor(hidden, columns, config=config).train(data)


def stay_after_training(root):
    """Worker 1 has much to do after the training; worker 0, which leads the group, has ended by then."""
    train_normalized(root)
    if task_name() == "worker 1":
        wait_until(lambda: files(root, "worker 0 has returned"))
        time.sleep(15)
    return task_name()
