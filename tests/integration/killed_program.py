"""Trains, evaluates and exports until the given step; prints each step.

python killed_program.py MODEL_DIR MAX_STEPS

Every element of the one variable, 4 MB, counts the steps: a checkpoint or an export of which a part
is older than another shows. The loss falls from step to step, so that each evaluation is the best.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import tensorflow as tf

import estimator_core as est

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
    """loss = 1 / (1 + steps so far)."""
    del labels
    table = tf1.get_variable("table", [1000, 1000], initializer=tf1.zeros_initializer())
    count = tf.reduce_max(table)
    step = tf1.train.get_global_step()
    return est.EstimatorSpec(
        mode,
        predictions={"count": count + 0 * features["x"]},
        loss=1 / (1 + count),
        train_op=tf.group(tf1.assign_add(table, tf.ones_like(table)), tf1.assign_add(step, 1)),
    )


class StepPrinter(est.SessionRunHook):
    """Tells the parent process where training is."""

    def begin(self):
        self._global_step = tf1.train.get_global_step()

    def after_run(self, run_context, run_values):
        print(run_context.session.run(self._global_step), flush=True)


def input_fn():
    return tf.data.Dataset.from_tensors({"x": [0.0]}).repeat()


def serving_input_receiver_fn():
    x = tf1.placeholder(tf.float32, [None])
    return est.export.ServingInputReceiver({"x": x}, {"x": x})


def main(model_dir, max_steps):
    config = est.RunConfig(model_dir=model_dir, save_checkpoints_steps=2, keep_checkpoint_max=3)
    exporter = est.BestExporter("best", serving_input_receiver_fn, exports_to_keep=2)
    est.train_and_evaluate(
        est.Estimator(model_fn, config=config),
        est.TrainSpec(input_fn, max_steps=max_steps, hooks=[StepPrinter()]),
        est.EvalSpec(input_fn, steps=1, exporters=[exporter], start_delay_secs=0, throttle_secs=0),
    )


if __name__ == "__main__":
    os.environ.pop("TF_CONFIG", None)
    main(sys.argv[1], int(sys.argv[2]))
