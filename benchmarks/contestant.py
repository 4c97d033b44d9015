"""One contestant of `speed.py`: does a piece of work, and prints the time of a unit as a line of JSON.

python benchmarks/contestant.py WORK KIND [--settings JSON] [--count N] [--size BATCH_SIZE,FEATURES] [--check]

`ours` is `estimator_core`. `reference` is `tf.estimator` itself, which needs an interpreter with TensorFlow
2.15; nothing else of the project is imported then. `keras` is Keras's fit, `floor` the bare loop, `input` the
input alone, and `tensorflow` the import of TensorFlow alone.
"""

import argparse
import importlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks.workloads.clock import Clock

# Work -> the module and name of its `Training`.
TRAINING = {
    "dnn": ("dnn", "WORK"),
    "keras_model": ("dnn", "KERAS_MODEL"),
    "taxi": ("taxi", "WORK"),
    "hooked": ("hooked", "WORK"),
    "sparse_linear": ("sparse_linear", "WORK"),
    "cnn": ("cnn", "WORK"),
    "rnn": ("rnn", "WORK"),
}
INFERENCE = ("evaluate", "predict", "one_row", "predictor")
OTHER = ("import", "first_step", "memory", "memory_evaluate")


def import_api(kind):
    """Returns the Estimator API, loaded; None for TensorFlow alone."""
    if kind == "ours":
        import estimator_core

        return estimator_core
    import tensorflow as tf

    if kind == "tensorflow":
        return None
    tf.estimator.Estimator  # noqa: B018  (a lazy module: this loads it)
    return tf.estimator


def train(work, kind, settings, count, size, check):
    """Returns the time of a training step; see `training.py`."""
    import dataclasses

    from benchmarks.workloads import training, vector

    if work == "vector":
        work = vector.work(*size)
    else:
        module, name = TRAINING[work]
        work = getattr(importlib.import_module(f"benchmarks.workloads.{module}"), name)
    if count:
        work = dataclasses.replace(work, steps=count)
    if kind == "keras":
        steps, jit = settings.get("steps_per_execution", 1), settings.get("jit_compile", False)
        return training.by_keras(work, steps, jit, check)
    if kind == "input":
        return training.by_input(work)
    if kind == "floor":
        return training.by_floor(work, settings.get("jit_compile", True), check)
    return training.by_estimator(work, import_api(kind), settings, check)


def first_step(estimator, settings):
    """Returns the time from making the Estimator to the end of a training of one step."""
    import tempfile

    from benchmarks.workloads import dnn

    with tempfile.TemporaryDirectory() as model_dir:
        start = Clock()
        config = estimator.RunConfig(model_dir=model_dir, **settings)
        dnn.make_estimator(estimator, config).train(dnn.input_fn, steps=1)
        return Clock().since(start)


def main():
    """Does the work and prints {"secs": ..., "processor_secs": ...} of a unit of it."""
    started = Clock()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", choices=(*TRAINING, "vector", *INFERENCE, *OTHER))
    parser.add_argument("kind", choices=("ours", "reference", "keras", "floor", "input", "tensorflow"))
    parser.add_argument("--settings", type=json.loads, default={}, help="settings of its RunConfig, or fit")
    parser.add_argument("--count", type=int, help="steps, rows or calls")
    parser.add_argument("--size", type=lambda text: [int(part) for part in text.split(",")], help="of vector")
    parser.add_argument("--check", action="store_true", help="also print the values that must be equal")
    args = parser.parse_args()
    if args.work in (*TRAINING, "vector"):
        measured = train(args.work, args.kind, args.settings, args.count, args.size, args.check)
    else:
        estimator = import_api(args.kind)
        imported = Clock()
        if args.work == "import":
            measured = imported.since(started)
        elif args.work == "first_step":
            measured = first_step(estimator, args.settings)
        elif args.work == "memory":
            from benchmarks.workloads import memory

            measured = memory.training_curve(estimator, args.settings, args.count or 100_000)
        elif args.work == "memory_evaluate":
            from benchmarks.workloads import memory

            measured = memory.evaluation_curve(estimator, args.settings, args.count or 200)
        else:
            from benchmarks.workloads import inference

            measured = inference.measure(args.work, estimator, args.settings, args.count, args.check)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
