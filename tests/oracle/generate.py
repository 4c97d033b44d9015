"""Runs the programs on the reference implementation and writes what they show, one file each.

See README.md for the environment that this needs.
"""

import json
import os
import sys
import tempfile

import tensorflow as tf

from tests.oracle import observe, programs

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    wanted = sys.argv[1:] or list(programs.PROGRAMS)
    for index, name in enumerate(wanted):
        label, make = programs.PROGRAMS[name]
        with tempfile.TemporaryDirectory() as model_dir:
            config = tf.estimator.RunConfig(
                model_dir=model_dir, save_summary_steps=1, tf_random_seed=100 + index
            )
            estimator = make(tf.estimator, config=config)
            seen = observe.observe(tf.estimator, estimator, label)
            initial = observe.variables_of(os.path.join(model_dir, "model.ckpt-0"))
        path = os.path.join(HERE, "expected", f"{name}.json")
        with open(path, "w") as file:
            json.dump({"initial_variables": initial, **seen}, file, indent=None, sort_keys=True)
            file.write("\n")
        print(f"{path}: {os.path.getsize(path)} bytes", flush=True)


if __name__ == "__main__":
    main()
