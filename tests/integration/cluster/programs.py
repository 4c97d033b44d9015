"""Programs of the tasks of the tests' clusters: functions that a new process can import."""

import json
import os
import time

import tensorflow as tf

import estimator_core as est
from estimator_core import v1
from tests.oracle import placement

tf1 = tf.compat.v1

MAX_STEPS = 40
NUM_WORKERS = 3


def one_weight_model_fn(features, labels, mode):
    """prediction = weight * x; each step halves the distance of the weight to 2."""
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(weight * features["x"] - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(loss, tf1.train.get_global_step())

    def notes(name):
        return Note(os.path.join(os.environ["NOTES"], name))

    return est.EstimatorSpec(
        mode,
        {"y": weight * features["x"]},
        loss,
        train_op,
        training_hooks=[notes("training_hook")],
        training_chief_hooks=[notes("chief_hook")],
    )


def one_weight_input_fn():
    return tf.data.Dataset.from_tensors(({"x": [1.0, 1.0]}, [2.0, 2.0])).repeat()


def canned_input_fn():
    return placement.input_fn().repeat()


def task_name():
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    return f"{task['type']} {task['index']}"


class Note(tf1.train.SessionRunHook):
    """Leaves a file with the task's name when a session ends: that the hook ran, and in which tasks."""

    def __init__(self, path):
        self._path = path

    def end(self, session):
        with open(f"{self._path}.{task_name()}", "w") as file:
            file.write(str(session.run(tf1.train.get_global_step())))


class TrainTogether(tf1.train.SessionRunHook):
    """Lets no task make its sixth step before all have made their fifth."""

    def __init__(self, directory):
        self._directory = directory
        self._steps = 0

    def after_run(self, run_context, run_values):
        self._steps += 1
        if self._steps == 5:
            open(os.path.join(self._directory, f"five.{task_name()}"), "w").close()
            wait_until(lambda: len(files(self._directory, "five.")) == NUM_WORKERS)


def files(directory, prefix):
    """Returns the rest after the prefix in the names of files."""
    names = os.listdir(directory)
    return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))


def wait_until(condition, timeout_secs=120):
    end = time.monotonic() + timeout_secs
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"Waited {timeout_secs} s for {condition}")
        time.sleep(0.05)


def tpu_estimator(config):
    """Returns the one weight as a TPUEstimator, without a TPU."""
    return est.tpu.TPUEstimator(
        lambda features, labels, mode, params: one_weight_model_fn(features, labels, mode),
        config=est.tpu.RunConfig(
            model_dir=config.model_dir,
            experimental_max_worker_delay_secs=0,
            save_checkpoints_steps=config.save_checkpoints_steps,
        ),
        use_tpu=False,
        train_batch_size=2,
        eval_batch_size=2,
    )


def tpu_input_fn(params):
    example = ({"x": 1.0}, 2.0)
    dataset = tf.data.Dataset.from_tensors(example).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


MODELS = {
    "custom": (lambda config: est.Estimator(one_weight_model_fn, config=config), one_weight_input_fn),
    "canned": (lambda config: placement.dnn_linear_combined(est, config), canned_input_fn),
    "canned_v1": (lambda config: placement.small_slices(v1, config), canned_input_fn),
    "tpu": (tpu_estimator, tpu_input_fn),
}


def train_models(root):
    """Trains one model after the other, each in a directory of its own, and returns the results."""
    tf1.logging.set_verbosity(tf1.logging.INFO)
    return {name: train_model(root, name) for name in MODELS}


def train_model(root, name):
    make, input_fn = MODELS[name]
    notes = os.environ["NOTES"] = os.path.join(root, f"{name}_notes")
    os.makedirs(notes, exist_ok=True)
    model_dir = os.path.join(root, name)
    config = est.RunConfig(
        model_dir=model_dir, experimental_max_worker_delay_secs=0, save_checkpoints_steps=15
    )
    if config.task_type == "worker":  # as if it had waited its seconds for the chief
        wait_until(lambda: os.path.exists(os.path.join(model_dir, "checkpoint")))
    return est.train_and_evaluate(
        make(config),
        est.TrainSpec(input_fn, MAX_STEPS, hooks=[TrainTogether(notes)]),
        est.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=0),
    )


# For the tests of faults


class NoteSteps(tf1.train.SessionRunHook):
    """Notes the steps of this process in a file."""

    def __init__(self, root):
        self._path = os.path.join(root, f"steps.{task_name()}.{os.getpid()}")

    def after_run(self, run_context, run_values):
        time.sleep(0.01)
        with open(self._path, "a") as file:
            file.write(".")


def train_until_told(root, save_checkpoints_steps):
    """Trains until the chief finds a file "stop", and tells the workers."""
    tf1.logging.set_verbosity(tf1.logging.INFO)
    config = est.RunConfig(
        model_dir=os.path.join(root, "model"),
        experimental_max_worker_delay_secs=0,
        save_checkpoints_steps=save_checkpoints_steps,
    )
    os.environ["NOTES"] = root
    estimator = est.Estimator(one_weight_model_fn, config=config)
    stop = est.experimental.make_early_stopping_hook(
        estimator, lambda: os.path.exists(os.path.join(root, "stop")), run_every_secs=None, run_every_steps=3
    )
    est.train_and_evaluate(
        estimator,
        est.TrainSpec(one_weight_input_fn, 10**6, hooks=[NoteSteps(root), stop]),
        est.EvalSpec(one_weight_input_fn, steps=2, start_delay_secs=0, throttle_secs=0),
    )


def train_another_model_in_the_worker(model_dir):
    """Trains for long, with a weight of another shape in the worker."""
    os.environ["NOTES"] = os.path.dirname(model_dir)
    shape = [2] if task_name() == "worker 0" else []

    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", shape, initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(weight * features["x"] - labels))
        optimizer = tf1.train.GradientDescentOptimizer(0.25)
        return est.EstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, tf1.train.get_global_step())
        )

    config = est.RunConfig(model_dir=model_dir, experimental_max_worker_delay_secs=0)
    est.train_and_evaluate(
        est.Estimator(model_fn, config=config),
        est.TrainSpec(one_weight_input_fn, 10**6),
        est.EvalSpec(one_weight_input_fn, steps=2),
    )


def steps_of(root, task):
    """Returns the number of steps that the process of a task has made so far."""
    path = os.path.join(root, f"steps.{task.name}.{task.pid}")
    return os.path.getsize(path) if os.path.exists(path) else 0


# For the tests of the launcher


def fail_in_the_worker(root):
    """Raises in the worker, once all are there; the others would go on for long."""
    with open(os.path.join(root, f"pid.{task_name()}"), "w") as file:
        file.write(str(os.getpid()))
    if task_name() == "worker 0":
        wait_until(lambda: len(files(root, "pid.")) == 3)
        print("about to fail")
        raise KeyError("what the worker did wrong")
    time.sleep(600)


def print_and_return():
    print("printed")
    os.write(2, b"from C\n")
    return [task_name(), {"a": 1}]


def die():
    print("about to die")
    os._exit(7)


def return_what_can_not_be_pickled():
    return lambda: None


def exit_with_5():
    raise SystemExit(5)


def train_to_the_end_of_the_input(root):
    config = est.RunConfig(model_dir=os.path.join(root, "model"))
    os.environ["NOTES"] = root
    result = est.train_and_evaluate(
        est.Estimator(one_weight_model_fn, config=config),
        est.TrainSpec(lambda: one_weight_input_fn().take(6), max_steps=100),
        est.EvalSpec(one_weight_input_fn, steps=2, start_delay_secs=0, throttle_secs=600),
    )
    return result or "the chief"


def wait_for_long(root):
    with open(os.path.join(root, f"pid.{task_name()}"), "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
