"""Measures the time and the steps that a training loses with a task of its cluster, as a table.

python benchmarks/cluster_faults.py

A chief, a worker, a parameter server and an evaluator train on this machine, with a checkpoint every 100
steps. Each row does to one of them the fault in its first column. "seconds" is the time until all training
tasks train again (about five of them for a process of TensorFlow to start), or until the tasks have ended.
"steps lost" are the steps after the newest checkpoint before the fault. "then" is the global step at which
the continued training was stopped, and the evaluator's result.
"""

import contextlib
import functools
import json
import logging
import os
import pathlib
import signal
import socket
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import tensorflow as tf  # noqa: E402  (the script may be started from anywhere)

import estimator_core as est  # noqa: E402
from benchmarks import tables  # noqa: E402
from estimator_core import tf1  # noqa: E402
from estimator_core.experimental.local_cluster import local_cluster  # noqa: E402

SAVE_STEPS = 100
LIMIT_SECS = 120


class NoteSteps(tf1.train.SessionRunHook):
    """Appends the global step of each step to a file of this process."""

    def __init__(self, root, task):
        self._path = os.path.join(root, f"steps.{task}.{os.getpid()}")

    def before_run(self, run_context):
        """Asks for the global step."""
        return tf1.train.SessionRunArgs(tf1.train.get_global_step())

    def after_run(self, run_context, run_values):
        """Writes the global step, and pauses so that the others can work."""
        time.sleep(0.01)
        with open(self._path, "a") as file:
            file.write(f"{run_values.results}\n")


def model_fn(features, labels, mode):
    """A weight that is trained to 2."""
    weight = tf1.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(weight * features - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.01).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    """Returns batches of two examples."""
    return tf.data.Dataset.from_tensors(([1.0, 1.0], [2.0, 2.0])).repeat()


def train(root, timeout_secs, port_is_taken):
    """Runs a task, until there is a file "stop"."""
    logging.getLogger("tensorflow").setLevel(logging.INFO)
    config = est.RunConfig(
        model_dir=os.path.join(root, "model"),
        experimental_max_worker_delay_secs=0,
        save_checkpoints_steps=SAVE_STEPS,
        session_creation_timeout_secs=timeout_secs,
    )
    cluster, task = json.loads(os.environ["TF_CONFIG"]).values()
    if port_is_taken and task["type"] == "worker":
        other = socket.socket()  # in the same process, but the port is taken all the same
        other.bind(("127.0.0.1", int(cluster["worker"][0].rpartition(":")[2])))
        other.listen()
    estimator = est.Estimator(model_fn, config=config)
    stop = est.experimental.make_early_stopping_hook(
        estimator, lambda: os.path.exists(os.path.join(root, "stop")), run_every_secs=None, run_every_steps=3
    )
    hooks = [NoteSteps(root, f"{task['type']}-{task['index']}"), stop]
    return est.train_and_evaluate(
        estimator,
        est.TrainSpec(input_fn, 10**6, hooks=hooks),
        est.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=0),
    )


class Training:
    """A training with its tasks, its steps and its checkpoints."""

    def __init__(self, root, tasks):
        self.root = pathlib.Path(root)
        self.tasks = {task.kind: task for task in tasks}

    def steps(self, kind):
        """The global steps that the current process of a task has made."""
        task = self.tasks[kind]
        path = self.root / f"steps.{task.kind}-{task.index}.{task.pid}"
        return path.read_text().splitlines() if path.exists() else []

    def checkpoint(self):
        """The global step of the newest checkpoint."""
        path = tf.train.latest_checkpoint(str(self.root / "model"))
        return int(path.rpartition("-")[2]) if path else -1

    def global_step(self):
        """The largest global step of a training task."""
        return max(int(self.steps(kind)[-1]) for kind in ("chief", "worker"))

    def wait_for_steps(self, *kinds):
        """Waits until each of the tasks has made five more steps; returns the seconds."""
        start = time.monotonic()
        for kind in kinds:
            before = len(self.steps(kind))
            wait_until(lambda kind=kind, before=before: len(self.steps(kind)) >= before + 5)
        return time.monotonic() - start

    def log(self, kind):
        """The log of a task."""
        task = self.tasks[kind]
        return (self.root / "logs" / f"{task.kind}-{task.index}.log").read_text()

    def stop(self):
        """Ends the training in all tasks; returns the last checkpoint and the evaluated step."""
        (self.root / "stop").touch()
        for kind in ("chief", "worker"):
            if self.tasks[kind].join(LIMIT_SECS) != 0:
                return f"{kind}: {self.tasks[kind].receive().message.splitlines()[-1]}"
        evaluator = self.tasks["evaluator"]
        evaluator.tell_that_training_is_over()
        if evaluator.join(LIMIT_SECS) != 0:
            return f"evaluator: {evaluator.receive().message.splitlines()[-1]}"
        evaluator.receive()
        return f"ended at {self.checkpoint()}, evaluated at {evaluator.result[0]['global_step']}"


def wait_until(condition):
    """Waits until a condition holds."""
    end = time.monotonic() + LIMIT_SECS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {LIMIT_SECS} s")
        time.sleep(0.02)


@contextlib.contextmanager
def training(started=("ps", "chief", "worker", "evaluator"), timeout_secs=7200, port_is_taken=False):
    """Starts some of the tasks, and yields the training after more than one checkpoint."""
    with tempfile.TemporaryDirectory() as root:
        job = functools.partial(train, root, timeout_secs, port_is_taken)
        logs = os.path.join(root, "logs")
        with local_cluster(job, 1, 1, True, log_dir=logs, grace_secs=10) as tasks:
            result = Training(root, tasks)
            for kind in started:
                result.tasks[kind].start()
            if len(started) == 4:
                wait_until(lambda: result.checkpoint() >= 2 * SAVE_STEPS)
                result.wait_for_steps("chief", "worker")
                wait_until(lambda: result.global_step() % SAVE_STEPS > SAVE_STEPS // 2)
            yield result


def killed(kind):
    """SIGKILL to a task, which is restarted immediately."""
    with training() as cluster:
        saved, step = cluster.checkpoint(), cluster.global_step()
        cluster.tasks[kind].kill()
        cluster.tasks[kind].start()
        if kind == "evaluator":
            start, newest = time.monotonic(), cluster.checkpoint()
            done = cluster.root / "model" / "eval"
            seen = {path.name for path in done.iterdir()}
            wait_until(lambda: {path.name for path in done.iterdir()} - seen)
            seconds, lost = time.monotonic() - start, 0
            happened = f"trained on; evaluates again, from {newest} or later"
        else:
            seconds = cluster.wait_for_steps("chief", "worker")
            restores = cluster.log("chief").count("Restoring parameters")
            lost = step - saved if kind in ("chief", "ps") else 0
            happened = {
                "worker": f"the chief trained on (restored {restores} times), the worker joined it",
                "chief": f"the worker trained on, the chief restored {restores} times",
                "ps": f"all waited, the chief restored {restores} times",
            }[kind]
        return [happened, f"{seconds:.1f}", str(lost), cluster.stop()]


def terminated(*kinds):
    """SIGTERM to tasks."""
    with training() as cluster:
        step = cluster.global_step()
        start = time.monotonic()
        for kind in kinds:
            cluster.tasks[kind].terminate()
        if kinds == ("ps",):  # serves until the others have ended
            cluster.wait_for_steps("chief", "worker")
            then = cluster.stop()
        codes = [str(cluster.tasks[kind].join(LIMIT_SECS)) for kind in kinds]
        seconds = time.monotonic() - start
        happened = f"exit code {', '.join(codes)}"
        lost = "0"
        if kinds == ("worker",) or kinds == ("evaluator",):
            cluster.wait_for_steps("chief")
            cluster.tasks[kinds[0]].start()
            then = cluster.stop()
            happened += "; the others trained on, and it was started again"
        elif kinds != ("ps",):
            lost = str(max(0, step - cluster.checkpoint()))
            then = f"checkpoint at {cluster.checkpoint()}, the fault at {step}"
        return [happened, f"{seconds:.1f}", lost, then]


def port_taken():
    """The worker's port is taken."""
    started = ("ps", "chief", "worker")
    with training(started, port_is_taken=True) as cluster:
        start = time.monotonic()
        code = cluster.tasks["worker"].join(LIMIT_SECS)
        seconds = time.monotonic() - start
        message = cluster.tasks["worker"].receive().message.strip().splitlines()[-1]
        return [f"exit code {code}: {message}", f"{seconds:.1f}", "", ""]


def never_started():
    """The parameter server is never started; the limit is 20 seconds."""
    with training(started=("chief",), timeout_secs=20) as cluster:
        start = time.monotonic()
        code = cluster.tasks["chief"].join(LIMIT_SECS)
        seconds = time.monotonic() - start
        message = cluster.tasks["chief"].receive().message.strip().splitlines()[-1]
        return [f"exit code {code}: {message}", f"{seconds:.1f}", "", ""]


FAULTS = {
    "worker killed": functools.partial(killed, "worker"),
    "ps killed": functools.partial(killed, "ps"),
    "chief killed": functools.partial(killed, "chief"),
    "evaluator killed": functools.partial(killed, "evaluator"),
    "SIGTERM to worker": functools.partial(terminated, "worker"),
    "SIGTERM to ps": functools.partial(terminated, "ps"),
    "SIGTERM to chief": functools.partial(terminated, "chief"),
    "SIGTERM to evaluator": functools.partial(terminated, "evaluator"),
    "SIGTERM to all": functools.partial(terminated, "ps", "worker", "chief", "evaluator"),
    "port taken": port_taken,
    "ps never started": never_started,
}


def main():
    """Causes all faults, one after the other, and prints the table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rows = []
    for name, fault in FAULTS.items():
        try:
            row = fault()
        except TimeoutError as error:
            row = [str(error), "", "", ""]
        rows.append([name, *row])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    print(tables.format_table(["fault", "what happened", "seconds", "steps lost", "then"], rows))


if __name__ == "__main__":
    main()
