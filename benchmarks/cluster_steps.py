"""Steps and bytes of training in a cluster of processes on this machine, by the size of the model.

python benchmarks/cluster_steps.py [--parameters 10000 1000000] [--steps 300]

The bytes are those that the loopback device counts (Linux) during the steps in the middle of the training,
so they include all tasks. The first steps don't count. "examples / one process" is the number of examples
that all tasks train on per second, divided by that of one process without a cluster.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import tensorflow as tf  # noqa: E402  (the script may be started from anywhere)

import estimator_core as est  # noqa: E402
from benchmarks import tables  # noqa: E402
from estimator_core import tf1  # noqa: E402
from estimator_core.experimental import launch_local_cluster  # noqa: E402

BATCH_SIZE = 32
WARM_UP_STEPS = 50
COLUMNS = 100

# Name, number of training tasks, number of parameter servers, True for synchronous training.
CLUSTERS = [
    ("one process", 1, 0, False),
    ("1 worker, 1 ps", 1, 1, False),
    ("2 workers, 1 ps", 2, 1, False),
    ("2 workers, 2 ps", 2, 2, False),
    ("2 workers in step", 2, 0, True),
    ("3 workers in step", 3, 0, True),
]


def loopback_bytes():
    """Returns the bytes that the loopback device has received so far."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        device, _, figures = line.partition(":")
        if device.strip() == "lo":
            return int(figures.split()[0])
    raise SystemExit("/proc/net/dev has no device lo")


class Measure(tf1.train.SessionRunHook):
    """Records the time, the bytes and the global step after the first steps and at the end."""

    def __init__(self, path, last):
        self._path = path
        self._marks = [WARM_UP_STEPS, last]
        self._notes = []

    def before_run(self, run_context):
        """Asks for the global step."""
        return tf1.train.SessionRunArgs(tf1.train.get_global_step())

    def after_run(self, run_context, run_values):
        """Writes a record after the first and after the last step."""
        if len(self._notes) < 2 and run_values.results >= self._marks[len(self._notes)]:
            step = int(run_values.results)
            self._notes.append((time.perf_counter(), loopback_bytes(), step))
            if len(self._notes) == 2:
                pathlib.Path(self._path).write_text(json.dumps(self._notes))


def model_fn(features, labels, mode, params):
    """A linear model with `params` parameters in two matrices, all of which each step reads and changes."""
    rows = params["rows"]
    first = tf1.get_variable("first", [COLUMNS, rows // 2])
    second = tf1.get_variable("second", [rows // 2, COLUMNS])
    output = tf.matmul(tf.matmul(features, first), second)
    loss = tf.reduce_mean(tf.square(output - labels))
    optimizer = tf1.train.GradientDescentOptimizer(0.01)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    """Returns the same batch again and again, so that the input costs nothing."""
    batch = tf.random.stateless_normal([BATCH_SIZE, COLUMNS], [1, 2])
    return tf.data.Dataset.from_tensors((batch, -batch)).repeat()


def train(root, num_parameters, last, in_step):
    """Runs a task."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if in_step else None
    config = est.RunConfig(
        model_dir=os.path.join(root, "model"),
        train_distribute=strategy,
        experimental_max_worker_delay_secs=0,
        save_checkpoints_secs=10**6,
        log_step_count_steps=None,
        save_summary_steps=None,
    )
    rows = 2 * math.ceil(num_parameters / COLUMNS / 2)
    estimator = est.Estimator(model_fn, config=config, params={"rows": rows})
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief"})["type"]
    hooks = [Measure(os.path.join(root, "notes.json"), last)] if task == "chief" else []
    train_spec = est.TrainSpec(input_fn, last + 20, hooks=hooks)
    est.train_and_evaluate(estimator, train_spec, est.EvalSpec(input_fn, steps=1))


def measure(num_parameters, workers, servers, in_step, steps):
    """Returns global steps per second, and bytes per global step, of one cluster."""
    with tempfile.TemporaryDirectory() as root:
        last = WARM_UP_STEPS + steps
        job = functools.partial(train, root, num_parameters, last, in_step)
        if workers == 1 and not servers:
            job()
        else:
            launch_local_cluster(job, workers, servers, log_dir=os.path.join(root, "logs"))
        notes = json.loads(pathlib.Path(root, "notes.json").read_text())
    (start, before, first), (end, after, second) = notes
    return (second - first) / (end - start), (after - before) / (second - first)


def main():
    """Measures all clusters and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parameters", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    rows = []
    for number in args.parameters:
        alone = None
        for name, workers, servers, in_step in CLUSTERS:
            rate, transferred = measure(number, workers, servers, in_step, args.steps)
            examples = rate * (workers if in_step else 1)  # a synchronous step has a batch for each
            alone = alone or examples
            rows.append(
                [
                    name,
                    f"{number:.0e}",
                    f"{rate:.1f}",
                    f"{transferred / 2**10:.1f}",
                    f"{transferred / (4 * number):.2f}",
                    f"{examples / alone:.2f}x",
                ]
            )
            print("\t".join(rows[-1]), file=sys.stderr, flush=True)
    header = ["", "parameters", "steps/s", "KiB/step", "bytes/weight bytes", "examples / one process"]
    print(tables.format_table(header, rows))


if __name__ == "__main__":
    main()
