"""Runs programs on the reference implementation and writes their observations, one file each.

A program that moves too far when floating point is rounded otherwise is refused: its file is not
written, and the exit code is 1. See README.md for the environment that this needs.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

from tests.oracle import measure_bands, observe
from tests.oracle.programs import PROGRAMS, SCENARIOS
from tests.oracle.reference import names_for, run_config

HERE = pathlib.Path(__file__).parent


def run_program(name, program, model_dir):
    """Returns the initial variables, and the observation of the program."""
    config = run_config(name, program, model_dir)
    e = names_for(program)
    seen = observe.observe(e, program.make(e, config=config), program)
    return {"initial_variables": observe.variables_of(os.path.join(model_dir, "model.ckpt-0")), **seen}


def write_expected(name, path):
    """Runs a program or a scenario, and writes its observation."""
    with tempfile.TemporaryDirectory() as model_dir:
        if name in PROGRAMS:
            seen = run_program(name, PROGRAMS[name], model_dir)
        else:
            seen = SCENARIOS[name].run(names_for(SCENARIOS[name]), model_dir)
    with open(path, "w") as file:
        json.dump(seen, file, indent=None, sort_keys=True)
        file.write("\n")


def main():
    names = sys.argv[1:] or [*PROGRAMS, *SCENARIOS]
    with tempfile.TemporaryDirectory() as directory:
        written = pathlib.Path(directory, "expected")
        written.mkdir()
        for name in names:
            path = written / f"{name}.json"
            write_expected(name, path)
            print(f"{name}: {path.stat().st_size} bytes", flush=True)
        refused = measure_bands.measure(names, written.parent)
        for name in names:
            if name not in refused:
                shutil.copy(written / f"{name}.json", HERE / "expected")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
