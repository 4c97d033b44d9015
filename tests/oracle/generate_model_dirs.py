"""Trains programs on the reference, keeps their checkpoints, and writes how they train on.

The checkpoint is the model_dir's own, without the graph (100 KB and more), which nobody reads to
continue. One that moves too far when floating point is rounded otherwise is refused, as in
`generate.py`. See README.md for the environment that this needs.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

from tests.oracle import measure_bands, observe
from tests.oracle.programs import MODEL_DIRS, PROGRAMS
from tests.oracle.reference import names_for, run_config

HERE = pathlib.Path(__file__).parent
STEPS_BEFORE, STEPS_AFTER = 30, 20


def write_model_dir(name, program, model_dir, target):
    """Trains in `model_dir`, copies its checkpoint to `target`, and trains on."""
    config = run_config(name, program, model_dir, keep_checkpoint_max=1)
    estimator = program.make(names_for(program), config=config)
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
    names = sys.argv[1:] or MODEL_DIRS
    refused = []
    with tempfile.TemporaryDirectory() as directory:
        written = pathlib.Path(directory)
        for name in names:
            target = written / "model_dirs" / name
            with tempfile.TemporaryDirectory() as model_dir:
                write_model_dir(name, PROGRAMS[name], model_dir, target)
            print(f"{name}: {sum(file.stat().st_size for file in target.iterdir())} bytes", flush=True)
        refused = measure_bands.measure([f"model_dirs/{name}" for name in names], written)
        for name in names:
            if f"model_dirs/{name}" not in refused:
                target = HERE / "model_dirs" / name
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(written / "model_dirs" / name, target)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
