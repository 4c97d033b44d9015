"""Runs programs once more on the reference, under the conditions of one variant.

`measure_bands.py` starts a process of this module for each variant, with its environment variables.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import tempfile
import zlib

import numpy as np
import tensorflow.compat.v1 as tf1

from tests.oracle import observe
from tests.oracle.generate_model_dirs import STEPS_AFTER
from tests.oracle.programs import PROGRAMS, SCENARIOS
from tests.oracle.reference import names_for

MODEL_DIR_PREFIX = "model_dirs/"


class LastBitHook(tf1.train.SessionRunHook):
    """Moves each weight to a neighbouring float before each step, up or down at random.

    A processor that rounds otherwise does the same to a weight in each update. Zeros stay.
    """

    def __init__(self, seed):
        self._random = np.random.RandomState(seed)

    def begin(self):
        self._variables = [v for v in tf1.trainable_variables() if v.dtype.is_floating]
        if not self._variables:
            raise ValueError("LastBitHook: the graph has no trainable variables. Received: none.")

    def before_run(self, run_context):
        session = run_context.session
        moved = [self._moved(values) for values in session.run(self._variables)]
        initializers = [variable.initializer for variable in self._variables]
        feeds = {op.inputs[1]: value for op, value in zip(initializers, moved, strict=True)}
        session.run(initializers, feeds)

    def _moved(self, values):
        values = np.asarray(values)
        towards = np.where(self._random.randint(0, 2, values.shape), np.inf, -np.inf)
        return np.where(values == 0, values, np.nextafter(values, towards.astype(values.dtype)))


def run_program(program, expected, model_dir, hooks):
    """Returns the observation of a program from the reference's initial variables."""
    observe.write_checkpoint(model_dir, expected["initial_variables"])
    e = names_for(program)
    estimator = program.make(e, config=e.RunConfig(model_dir=model_dir, save_summary_steps=1))
    numbers_only = dataclasses.replace(program, serving_features=None)
    return observe.observe(e, estimator, numbers_only, hooks=hooks)


def run_model_dir(program, source, model_dir, hooks):
    """Returns the observation of a model directory of the reference that trains on."""
    shutil.copytree(source, model_dir, dirs_exist_ok=True)
    e = names_for(program)
    estimator = program.make(e, config=e.RunConfig(model_dir=model_dir, save_summary_steps=1))
    metrics = estimator.evaluate(program.inputs(repeat=1))
    estimator.train(program.inputs(), steps=STEPS_AFTER, hooks=hooks)
    return {
        "metrics": {key: float(value) for key, value in metrics.items()},
        "losses": observe.losses_of(model_dir),
    }


def run(name, expected_dir, model_dir, last_bit):
    """Returns the observation of a program, a scenario or a model directory.

    Args:
        name: Its name; of a model directory, with "model_dirs/" before it.
        expected_dir: Directory of `expected/` and `model_dirs/`.
        model_dir: An empty directory.
        last_bit: True to add a `LastBitHook`, which a scenario has no place for.
    """
    hooks = [LastBitHook(zlib.crc32(name.encode()))] if last_bit else []
    if name.startswith(MODEL_DIR_PREFIX):
        program = PROGRAMS[name.removeprefix(MODEL_DIR_PREFIX)]
        return run_model_dir(program, expected_dir / name, model_dir, hooks)
    if name in SCENARIOS:
        return {"numbers": SCENARIOS[name].run(names_for(SCENARIOS[name]), model_dir)}
    expected = json.loads((expected_dir / "expected" / f"{name}.json").read_text())
    return run_program(PROGRAMS[name], expected, model_dir, hooks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("expected_dir", type=pathlib.Path)
    parser.add_argument("output_dir", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--last_bit", action="store_true")
    args = parser.parse_args()
    for name in args.names:
        with tempfile.TemporaryDirectory() as directory:
            model_dir = os.path.join(directory, "model")
            os.mkdir(model_dir)
            seen = run(name, args.expected_dir, model_dir, args.last_bit)
        path = args.output_dir / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(seen))
        print(name, flush=True)


if __name__ == "__main__":
    main()
