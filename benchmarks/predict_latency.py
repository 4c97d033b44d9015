"""Milliseconds per `predict` call of one example: our Estimator against tf.estimator itself.

python benchmarks/predict_latency.py [--reference-python PYTHON] [--calls 1000] [--rounds 4]

DNNClassifier [32, 16] on 3 numeric and 1 embedding column. A call is `list(predict(input_fn))`, the
way in which programs ask for one prediction at a time. Each contestant is a process of its own; the
rounds interleave them, and the calls of all rounds count together. The predictor is the function that
`Estimator.predictor` returns, which keeps its graph.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
WARM_UP_CALLS = 5
OURS, PREDICTOR, REFERENCE = "estimator_core", "estimator_core predictor", "tf.estimator"


def classifier_and_input_fn(name, model_dir):
    """Returns a trained DNNClassifier of the Estimator API `name`, and an input_fn of one example."""
    import tensorflow as tf

    if name == REFERENCE:
        estimator = tf.estimator
    else:
        sys.path.insert(0, str(FOLDER.parent))
        import estimator_core as estimator

    columns = [tf.feature_column.numeric_column(key) for key in "xyz"]
    ids = tf.feature_column.categorical_column_with_identity("id", 100)
    columns.append(tf.feature_column.embedding_column(ids, 4))
    classifier = estimator.DNNClassifier([32, 16], columns, model_dir=model_dir)

    def input_fn():
        features = {key: [[1.0]] for key in "xyz"}
        return tf.data.Dataset.from_tensors(({**features, "id": [[7]]}, [[1]]))

    classifier.train(input_fn)
    return classifier, input_fn


def asker(name, classifier, input_fn):
    """Returns a function that asks for one prediction, and returns a list of it."""
    if name != PREDICTOR:
        return lambda: list(classifier.predict(input_fn))
    import tensorflow as tf

    import estimator_core

    row = {**{key: [[1.0]] for key in "xyz"}, "id": [[7]]}
    specs = {key: tf.TensorSpec([None, 1], tf.float32) for key in "xyz"}
    specs["id"] = tf.TensorSpec([None, 1], tf.int64)
    receiver_fn = estimator_core.export.build_raw_serving_input_receiver_fn(specs)
    predict = classifier.predictor(receiver_fn)
    return lambda: list(predict(row)["class_ids"])


def run_contestant(name, calls):
    """Prints the milliseconds of each call as JSON."""
    with tempfile.TemporaryDirectory() as model_dir:
        classifier, input_fn = classifier_and_input_fn(name, model_dir)
        ask = asker(name, classifier, input_fn)
        milliseconds = []
        for number in range(WARM_UP_CALLS + calls):
            start = time.perf_counter()
            predictions = ask()
            if number >= WARM_UP_CALLS:
                milliseconds.append(1000 * (time.perf_counter() - start))
            if len(predictions) != 1:
                raise SystemExit(f"one prediction expected. Received: {predictions}")
    print(json.dumps(milliseconds))


def measure(python, name, calls):
    """Returns the milliseconds of the calls of one contestant.

    Raises:
      SystemExit: It failed; its log is printed.
    """
    command = [
        python,
        str(FOLDER / "predict_latency.py"),
        "--contestant",
        name,
        "--calls",
        str(calls),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER.parent)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode} of: {' '.join(command)}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Measures all contestants and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference-python", help="interpreter with TensorFlow 2.15 or older")
    parser.add_argument("--calls", type=int, default=1000, help="of each contestant, in all")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--contestant", choices=(OURS, PREDICTOR, REFERENCE), help=argparse.SUPPRESS
    )
    args = parser.parse_args()
    if args.contestant:
        run_contestant(args.contestant, args.calls)
        return

    sys.path.insert(0, str(FOLDER.parent))
    from benchmarks import tables

    pythons = {OURS: sys.executable, PREDICTOR: sys.executable}
    if args.reference_python:
        pythons[REFERENCE] = args.reference_python
    latencies = {name: [] for name in pythons}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds} ...", file=sys.stderr)
        for name, python in pythons.items():
            latencies[name] += measure(python, name, args.calls // args.rounds)
    ours = statistics.median(latencies[OURS])
    rows = []
    for name, values in latencies.items():
        median, worst = statistics.median(values), statistics.quantiles(values, n=100)[98]
        rows.append(
            [name, str(len(values)), f"{median:.2f}", f"{worst:.2f}", f"{median / ours:.4f}x"]
        )
    header = ["", "calls", "median ms", "99% below ms", "it / ours"]
    print(tables.format_table(header, rows))


if __name__ == "__main__":
    main()
