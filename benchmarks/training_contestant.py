"""One contestant of `training_steps.py`: trains a small DNN and prints its steps per second.

python training_contestant.py (estimator|reference|keras) [--steps-per-session-run N]
    [--steps-per-execution N] [--jit]

With `--jit`, an Estimator of `estimator_core` chooses by itself whether steps are compiled.

`estimator` is `estimator_core`, `reference` is `tf.estimator` itself, which needs an interpreter
with TensorFlow 2.15 or older: this file imports nothing else of the project.
"""

import argparse
import json
import tempfile
import time

import numpy as np
import tensorflow as tf

BATCH_SIZE = 128
HIDDEN_UNITS = [64, 32]
EXAMPLES = 50_000
CATEGORIES = {"a": 100, "b": 1000}
EMBEDDING_DIMENSION = 8
NUMBERS = ("x", "y", "z")


class Clock:
    """The time, and the time of the processors that this process has had."""

    def __init__(self):
        self.secs, self.processor_secs = time.perf_counter(), time.process_time()

    def speed_until(self, end, steps):
        """Returns what is printed of so many steps."""
        return {
            "steps_per_sec": steps / (end.secs - self.secs),
            "processor_ms_per_step": (end.processor_secs - self.processor_secs) / steps * 1000,
        }


def dataset():
    """Returns an endless dataset of (features, label) batches from memory."""
    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=(EXAMPLES, 1)).astype(np.float32) for name in NUMBERS}
    for name, size in CATEGORIES.items():
        features[name] = rng.integers(0, size, (EXAMPLES, 1))
    label = (features["x"] + features["y"] * (features["a"] % 3) > 0).astype(np.int64)
    examples = tf.data.Dataset.from_tensor_slices((features, label))
    return examples.shuffle(10_000, seed=0).repeat().batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def estimator_steps_per_sec(estimator, warm_up_steps, steps, **settings):
    """Trains a DNNClassifier of an Estimator API, with `settings` of its RunConfig."""

    class Stopwatch(estimator.SessionRunHook):
        """Notes the time after the warm-up and at the last step."""

        def begin(self):
            self.done, self.first, self.last = 0, None, None

        def steps_until_due(self, global_step):
            return max(warm_up_steps - global_step, 0) or warm_up_steps + steps - global_step

        def skip_steps(self, steps):
            self.done += steps

        def after_run(self, run_context, run_values):
            self.done += 1
            if self.done == warm_up_steps:
                self.first = Clock()
            self.last = Clock()

    columns = [tf.feature_column.numeric_column(name) for name in NUMBERS]
    for name, size in CATEGORIES.items():
        ids = tf.feature_column.categorical_column_with_identity(name, size)
        columns.append(tf.feature_column.embedding_column(ids, EMBEDDING_DIMENSION))
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as model_dir:
        classifier = estimator.DNNClassifier(
            HIDDEN_UNITS,
            columns,
            config=estimator.RunConfig(model_dir=model_dir, **settings),
            optimizer="Adam",
        )
        classifier.train(dataset, hooks=[stopwatch], max_steps=warm_up_steps + steps)
    return stopwatch.first.speed_until(stopwatch.last, steps)


def keras_steps_per_sec(steps_per_execution, jit_compile, warm_up_steps, steps):
    """Trains the same network with Keras's fit."""
    inputs = {name: tf.keras.Input((1,), name=name) for name in NUMBERS}
    parts = list(inputs.values())
    for name, size in CATEGORIES.items():
        inputs[name] = tf.keras.Input((1,), name=name, dtype="int64")
        embedding = tf.keras.layers.Embedding(size, EMBEDDING_DIMENSION)(inputs[name])
        parts.append(tf.keras.layers.Flatten()(embedding))
    hidden = tf.keras.layers.Concatenate()(parts)
    for units in HIDDEN_UNITS:
        hidden = tf.keras.layers.Dense(units, activation="relu")(hidden)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))
    model.compile(
        optimizer=tf.keras.optimizers.Adam(),
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
        jit_compile=jit_compile,
    )
    data = dataset()
    model.fit(data, steps_per_epoch=warm_up_steps, verbose=0)
    start = Clock()
    model.fit(data, steps_per_epoch=steps, verbose=0)
    return start.speed_until(Clock(), steps)


def main():
    """Prints {"steps_per_sec": ..., "processor_ms_per_step": ..., "version": ...}."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("estimator", "reference", "keras"))
    parser.add_argument("--steps-per-session-run", type=int, help="of estimator; chosen by itself")
    parser.add_argument("--steps-per-execution", type=int, default=1)
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--warm-up-steps", type=int, default=300)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    length = (args.warm_up_steps, args.steps)
    if args.kind == "keras":
        speed = keras_steps_per_sec(args.steps_per_execution, args.jit, *length)
    elif args.kind == "reference":
        speed = estimator_steps_per_sec(tf.estimator, *length)
    else:
        import estimator_core

        count = args.steps_per_session_run
        settings = {} if count is None else {"steps_per_session_run": count}
        if args.jit:
            settings["jit_compile"] = "auto"
        speed = estimator_steps_per_sec(estimator_core, *length, **settings)
    print(json.dumps({**speed, "version": tf.__version__}))


if __name__ == "__main__":
    main()
