"""Runs programs on the reference implementation and writes what they show, one file each.

See README.md for the environment that this needs.
"""

import json
import os
import sys
import tempfile
import zlib

import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs import PROGRAMS, SCENARIOS

HERE = os.path.dirname(os.path.abspath(__file__))


def names_for(program):
    """Returns the module of the reference that a program speaks to."""
    return tf.compat.v1.estimator if program.v1 else tf.estimator


def run_program(name, program, model_dir):
    """Returns the initial variables, and what the program shows."""
    e = names_for(program)
    config = e.RunConfig(
        model_dir=model_dir, save_summary_steps=1, tf_random_seed=zlib.crc32(name.encode())
    )
    seen = observe.observe(e, program.make(e, config=config), program)
    initial = observe.variables_of(os.path.join(model_dir, "model.ckpt-0"))
    return {"initial_variables": initial, **seen}


def main():
    for name in sys.argv[1:] or [*PROGRAMS, *SCENARIOS]:
        with tempfile.TemporaryDirectory() as model_dir:
            if name in PROGRAMS:
                seen = run_program(name, PROGRAMS[name], model_dir)
            else:
                seen = SCENARIOS[name].run(names_for(SCENARIOS[name]), model_dir)
        path = os.path.join(HERE, "expected", f"{name}.json")
        with open(path, "w") as file:
            json.dump(seen, file, indent=None, sort_keys=True)
            file.write("\n")
        print(f"{path}: {os.path.getsize(path)} bytes", flush=True)


if __name__ == "__main__":
    main()
