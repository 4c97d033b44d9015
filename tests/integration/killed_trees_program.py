"""Grows trees until they are all there; prints the global step of each step.

python killed_trees_program.py MODEL_DIR
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import tensorflow as tf

import estimator_core as est
from tests.estimator_core.tree_programs import Table, columns, config


class StepPrinter(est.SessionRunHook):
    """Tells the parent process where training is."""

    def after_run(self, run_context, run_values):
        step = tf.compat.v1.train.get_global_step(run_context.session.graph)
        print(run_context.session.run(step), flush=True)


def main(model_dir):
    model = est.BoostedTreesClassifier(
        columns(),
        n_batches_per_layer=2,
        n_trees=40,
        max_depth=4,
        center_bias=True,
        config=config(model_dir, save_checkpoints_steps=10),
    )
    model.train(Table(rows=1000).input_fn(batch_size=500), hooks=[StepPrinter()])


if __name__ == "__main__":
    os.environ.pop("TF_CONFIG", None)
    main(sys.argv[1])
