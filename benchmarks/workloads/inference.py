"""(f) evaluate, (g) predict, (h) predictions of one row after the other, with the DNN of (a).

The rows are batches of 256 in memory. Each function returns one that does the work.
"""

import collections
import tempfile

import numpy as np
import tensorflow as tf

from benchmarks.workloads import dnn
from benchmarks.workloads.clock import Clock

BATCH_SIZE = 256
RESIDENT_ROWS = 51_200  # these rows are repeated


def input_of(rows):
    """Returns an input_fn of `rows` rows."""
    if rows <= BATCH_SIZE:
        return lambda: tf.data.Dataset.from_tensors(dnn.arrays(rows))
    resident = dnn.in_batches(dnn.arrays(min(rows, RESIDENT_ROWS)), BATCH_SIZE)

    def input_fn():
        batches = tf.data.Dataset.from_tensor_slices(resident)
        return batches.repeat().take(rows // BATCH_SIZE)

    return input_fn


def evaluate(classifier, rows):
    """Returns a function that evaluates `rows` rows, and returns the names of the metrics."""
    input_fn = input_of(rows)
    return lambda: {"names": sorted(classifier.evaluate(input_fn))}


def predict(classifier, rows):
    """Returns a function that predicts `rows` rows, and returns their number and the names."""
    input_fn = input_of(rows)

    def run():
        # The deque keeps only the last row, and enumerate counts: Python does no more per row.
        ((number, row),) = collections.deque(enumerate(classifier.predict(input_fn), 1), maxlen=1)
        return {"rows": number, "names": sorted(row)}

    return run


def one_row(classifier, calls):
    """Returns a function that calls `predict` with one row, `calls` times."""
    input_fn = input_of(1)

    def run():
        for _ in range(calls):
            (row,) = classifier.predict(input_fn)
        return {"names": sorted(row)}

    return run


def predictor(classifier, calls):
    """Returns a function that asks our predictor for one row, `calls` times; tf.estimator has none."""
    import estimator_core

    features, _ = dnn.arrays(1)
    specs = {
        name: tf.TensorSpec([None, 1], tf.float32 if name in dnn.NUMBERS else tf.int64) for name in features
    }
    receiver_fn = estimator_core.export.build_raw_serving_input_receiver_fn(specs)
    ask = classifier.predictor(receiver_fn)

    def run():
        for _ in range(calls):
            predictions = ask(features)
        return {"names": sorted(predictions)}

    return run


# Work -> function that makes it, size of the warm-up, size of the measurement.
WORK = {
    "evaluate": (evaluate, 3 * BATCH_SIZE, 1_000_000),
    "predict": (predict, 3 * BATCH_SIZE, 1_000_000),
    "one_row": (one_row, 5, 1000),
    "predictor": (predictor, 5, 1000),
}


def measure(name, estimator, config, count, check):
    """Returns the time of a row or call, after a warm-up with a smaller piece of the work."""
    make, warm_up, default = WORK[name]
    count = count or default
    with tempfile.TemporaryDirectory() as model_dir:
        config = estimator.RunConfig(model_dir=model_dir, **config)
        classifier = dnn.make_estimator(estimator, config)
        classifier.train(input_of(10 * BATCH_SIZE), steps=10)
        make(classifier, warm_up)()
        run = make(classifier, count)
        start = Clock()
        answers = run()
        measured = Clock().since(start, count)
        weights = [classifier.get_variable_value(name) for name in classifier.get_variable_names()]
    if check:
        # TensorFlow's own optimizers and Keras's have different slots, so the largest arrays are compared.
        largest = max(map(np.size, weights))
        measured["check"] = {**answers, "largest_variable": int(largest)}
    return measured
