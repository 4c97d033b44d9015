"""One contestant of `inference.py`: does one piece of work, and prints what it took.

python inference_contestant.py KIND WORK [--count N] [--profile FILE]

`ours` is `estimator_core`, `reference` is `tf.estimator` itself, which needs an interpreter with TensorFlow
2.15 or older: this file imports nothing else of the project.
"""

import argparse
import collections
import cProfile
import json
import pathlib
import sys
import tempfile
import time

BATCH_SIZE = 256
CATEGORIES = {"a": 100, "b": 1000}
HIDDEN_UNITS = [64, 32]
NUMBERS = ("x", "y", "z")
RESIDENT_ROWS = 51_200  # the rows are these, again and again


class Clock:
    """The time, and the time of the processors that this process has had."""

    def __init__(self):
        self.secs, self.processor_secs = time.perf_counter(), time.process_time()

    def since(self, start):
        """Returns both as what is printed."""
        return {
            "secs": self.secs - start.secs,
            "processor_secs": self.processor_secs - start.processor_secs,
        }


def module_of(kind):
    """Returns the Estimator API."""
    import tensorflow as tf

    if kind == "reference":
        return tf.estimator
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import estimator_core

    return estimator_core


def arrays(rows):
    """Returns (features, labels) of so many rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=(rows, 1)).astype(np.float32) for name in NUMBERS}
    for name, size in CATEGORIES.items():
        features[name] = rng.integers(0, size, (rows, 1))
    labels = (features["x"] + features["y"] * (features["a"] % 3) > 0).astype(np.int64)
    return features, labels


def input_of(rows):
    """Returns an input_fn of so many rows, whose batches are in memory: it costs nearly nothing."""
    import tensorflow as tf

    if rows <= BATCH_SIZE:
        return lambda: tf.data.Dataset.from_tensors(arrays(rows))
    resident = min(rows, RESIDENT_ROWS) // BATCH_SIZE * BATCH_SIZE
    in_batches = tf.nest.map_structure(
        lambda values: values.reshape(-1, BATCH_SIZE, 1), arrays(resident)
    )

    def input_fn():
        batches = tf.data.Dataset.from_tensor_slices(in_batches)
        return batches.repeat().take(rows // BATCH_SIZE)

    return input_fn


def classifier_in(estimator, model_dir):
    """Returns a DNNClassifier of an Estimator API."""
    import tensorflow as tf

    columns = [tf.feature_column.numeric_column(name) for name in NUMBERS]
    for name, size in CATEGORIES.items():
        ids = tf.feature_column.categorical_column_with_identity(name, size)
        columns.append(tf.feature_column.embedding_column(ids, 8))
    return estimator.DNNClassifier(HIDDEN_UNITS, columns, model_dir=model_dir, optimizer="Adam")


def evaluate(classifier, rows):
    """Returns a function that evaluates so many rows."""
    input_fn = input_of(rows)
    return lambda: classifier.evaluate(input_fn)


def predict(classifier, rows):
    """Returns a function that predicts so many rows."""
    input_fn = input_of(rows)
    return lambda: collections.deque(classifier.predict(input_fn), maxlen=0)


def one_row(classifier, calls):
    """Returns a function that predicts one row so many times."""
    input_fn = input_of(1)

    def run():
        for _ in range(calls):
            (_,) = classifier.predict(input_fn)

    return run


def predictor(classifier, calls):
    """Returns a function that asks the predictor for one row so many times."""
    import tensorflow as tf

    import estimator_core

    features, _ = arrays(1)
    specs = {
        name: tf.TensorSpec([None, 1], tf.float32 if name in NUMBERS else tf.int64)
        for name in features
    }
    receiver_fn = estimator_core.export.build_raw_serving_input_receiver_fn(specs)
    ask = classifier.predictor(receiver_fn)

    def run():
        for _ in range(calls):
            ask(features)

    return run


WORK = {  # and how much of it warms up
    "evaluate": (evaluate, 3 * BATCH_SIZE),
    "predict": (predict, 3 * BATCH_SIZE),
    "one_row": (one_row, 5),
    "predictor": (predictor, 5),
}


def main():
    """Prints {"secs": ..., "processor_secs": ...} of the work, when a smaller one has warmed it up."""
    started = Clock()
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("ours", "reference"))
    parser.add_argument("work", choices=(*WORK, "import", "first_step"))
    parser.add_argument("--count", type=int, default=1_000_000, help="rows, or calls")
    parser.add_argument("--profile", help="file for cProfile")
    args = parser.parse_args()
    estimator = module_of(args.kind)
    imported = Clock()
    with tempfile.TemporaryDirectory() as model_dir:
        classifier = classifier_in(estimator, model_dir)
        classifier.train(input_of(10 * BATCH_SIZE), steps=1)
        measured = imported.since(started) if args.work == "import" else Clock().since(imported)
        if args.work in WORK:
            make, warm_up = WORK[args.work]
            make(classifier, warm_up)()
            run = make(classifier, args.count)
            profile = cProfile.Profile() if args.profile else None
            if profile:
                profile.enable()
            start = Clock()
            run()
            measured = Clock().since(start)
            if profile:
                profile.disable()
                profile.dump_stats(args.profile)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
