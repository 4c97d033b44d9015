"""A Keras model that two workers train in step while an evaluator evaluates its checkpoints.

`main` starts the tasks. Each is a separate process that runs `task`.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import tensorflow as tf

RNG = np.random.RandomState(23)
X = RNG.randn(48, 3).astype(np.float32)
Y = (X @ [[1.0], [-2.0], [0.5]] + 0.3 * RNG.randn(48, 1) > 0).astype(np.float32)
KERNELS = [(0.5 * RNG.randn(3, 4)).tolist(), (0.5 * RNG.randn(4, 1)).tolist()]
BATCH_SIZE = 6  # of a worker
MAX_STEPS, SAVE_EVERY = 12, 4
COMMAND = "from tests.oracle.projects import two_worker_keras; two_worker_keras.task()"


def training_input_fn(input_context):
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH_SIZE)
    return data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id).repeat()


def evaluation_input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.1)


def exit_with(parent):
    """Ends this process after its parent: a task waits for the others without a limit."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


class WaitsForEvaluation(tf.compat.v1.train.SessionRunHook):
    """Continues the training when the last checkpoint has been evaluated."""

    def begin(self):
        self._steps = 0

    def before_run(self, run_context):
        if self._steps % SAVE_EVERY == 0:
            wait_for(f"model/eval/evaluated-{self._steps}")
        self._steps += 1


class Evaluated(tf.compat.v1.train.SessionRunHook):
    def end(self, session):
        step = session.run(tf.compat.v1.train.get_global_step())
        pathlib.Path(f"model/eval/evaluated-{step}").touch()


def keras_model():
    layers = [
        tf.keras.layers.Dense(
            len(kernel[0]), activation, kernel_initializer=tf.keras.initializers.Constant(kernel), name=name
        )
        for kernel, activation, name in zip(KERNELS, ("tanh", "sigmoid"), ("hidden", "output"), strict=True)
    ]
    model = tf.keras.Sequential([tf.keras.Input((3,), name="x"), *layers])
    model.compile(tf.keras.optimizers.legacy.SGD(0.2, momentum=0.5), "binary_crossentropy", metrics=["mae"])
    return model


def task():
    threading.Thread(target=exit_with, args=[os.getppid()], daemon=True).start()
    kind = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
    tf.compat.v1.disable_eager_execution()  # in eager mode, 2.15 can't copy the strategy
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    config = tf.estimator.RunConfig(
        "model", train_distribute=strategy, save_checkpoints_steps=SAVE_EVERY, save_summary_steps=2
    )
    if kind != "chief":
        wait_for("made")  # 2.15 writes the initial weights into the directory
    estimator = tf.keras.estimator.model_to_estimator(keras_model(), config=config, checkpoint_format="saver")
    pathlib.Path("made").touch()
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(training_input_fn, MAX_STEPS, hooks=[WaitsForEvaluation()]),
        tf.estimator.EvalSpec(
            evaluation_input_fn, steps=None, hooks=[Evaluated()], start_delay_secs=0, throttle_secs=0
        ),
    )


def free_address():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{server.getsockname()[1]}"


def main():
    cluster = {kind: [free_address()] for kind in ("chief", "worker", "evaluator")}
    is_reference = "estimator_core" not in sys.modules
    install = "" if is_reference else "import estimator_core; estimator_core.install(); "
    os.makedirs("model/eval")
    processes, codes = [], []
    for kind in cluster:
        config = {"cluster": cluster, "task": {"type": kind, "index": 0}}
        variables = {"TF_CONFIG": json.dumps(config), "PYTHONPATH": os.pathsep.join(sys.path)}
        if not is_reference:
            variables["TF_USE_LEGACY_KERAS"] = "1"
        command = [sys.executable, "-c", install + COMMAND]
        with open(f"{kind}.log", "w") as log:
            processes.append(subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log))
    try:
        codes = [process.wait(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
        if any(codes) or not codes:
            print(*(log.read_text() for log in pathlib.Path().glob("*.log")), file=sys.stderr)
    assert not any(codes)
    # 2.15 leaves the initial weights, and a directory of the worker.
    for folder in ("model/keras", "model/tmp_worker_0"):
        shutil.rmtree(folder, ignore_errors=True)
    names = [f"{layer}/{name}" for layer in ("hidden", "output") for name in ("kernel", "bias")]
    checkpoint = tf.train.latest_checkpoint("model")
    return {name: tf.train.load_variable(checkpoint, name).tolist() for name in names}
