"""Trains programs on the reference, keeps their checkpoints, and writes how they go on there.

The checkpoint is the model_dir's own, without the graph (100 KB and more), which nobody reads to
continue. See README.md for the environment that this needs.
"""

import json
import os
import shutil
import sys
import tempfile
import zlib

import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs import MODEL_DIRS, PROGRAMS

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS_BEFORE, STEPS_AFTER = 30, 20


def names_for(program):
    """Returns the module of the reference that a program speaks to."""
    return tf.compat.v1.estimator if program.v1 else tf.estimator


def write_model_dir(name, program, model_dir, target):
    """Trains in `model_dir`, copies its checkpoint to `target`, and trains on."""
    e = names_for(program)
    config = e.RunConfig(
        model_dir=model_dir,
        save_summary_steps=1,
        keep_checkpoint_max=1,
        tf_random_seed=zlib.crc32(name.encode()),
    )
    estimator = program.make(e, config=config)
    estimator.train(program.inputs(), steps=STEPS_BEFORE)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    checkpoint = os.path.basename(estimator.latest_checkpoint())
    for file in os.listdir(model_dir):
        if file == "checkpoint" or (file.startswith(checkpoint) and not file.endswith(".meta")):
            shutil.copy(os.path.join(model_dir, file), target)
    metrics = estimator.evaluate(program.inputs(repeat=1))
    estimator.train(program.inputs(), steps=STEPS_AFTER)
    expected = {
        "metrics": {key: float(value) for key, value in metrics.items()},
        "losses": observe.losses_of(model_dir)[STEPS_BEFORE:],
        "global_step": int(estimator.get_variable_value("global_step")),
    }
    with open(os.path.join(target, "expected.json"), "w") as file:
        json.dump(expected, file, sort_keys=True)
        file.write("\n")


def main():
    for name in sys.argv[1:] or MODEL_DIRS:
        target = os.path.join(HERE, "model_dirs", name)
        with tempfile.TemporaryDirectory() as model_dir:
            write_model_dir(name, PROGRAMS[name], model_dir, target)
        sizes = {file: os.path.getsize(os.path.join(target, file)) for file in os.listdir(target)}
        print(f"{target}: {sizes}", flush=True)


if __name__ == "__main__":
    main()
