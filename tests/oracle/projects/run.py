"""Runs these programs and prints as JSON what they showed.

python -m tests.oracle.projects.run [NAME ...]               here, after estimator_core.install()
python -m tests.oracle.projects.run --reference [NAME ...]   in the reference environment
"""

import argparse
import contextlib
import importlib
import json
import os
import pathlib
import sys
import tempfile
import traceback

import numpy as np

from tests.integration.old_projects.run import left_in

HERE = pathlib.Path(__file__).parent
ON_SHARDS = ("cnn_on_shards", "contrastive_on_shards", "gan_on_shards")
PROJECTS = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "run")


def as_plain(value):
    """Returns NumPy's numbers as Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"not plain data. Received: {value!r}")


def seen_of(project, **arguments):
    """Returns what a program returned and left in its directory."""
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(sys.stderr):
        os.chdir(directory)
        returned = importlib.import_module(f"tests.oracle.projects.{project}").main(**arguments)
        left = left_in(pathlib.Path(directory))
        os.chdir(HERE)
    return {"returned": returned, **left}


def in_a_child(project, **arguments):
    """Returns what a program showed in a process of its own, or {"error": traceback}.

    The process has the imports of this one, but what the program does to TensorFlow, such as
    `disable_v2_behavior()`, ends with it.
    """
    with tempfile.NamedTemporaryFile("w+") as file:
        child = os.fork()
        if not child:
            try:
                seen = json.dumps(seen_of(project, **arguments), default=as_plain)
            except BaseException:
                seen = json.dumps({"error": traceback.format_exc()})
            file.write(seen)
            file.flush()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        file.seek(0)
        text = file.read()
    return json.loads(text) if text else {"error": f"it ended with the code {code}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("projects", nargs="*")
    parser.add_argument("--reference", action="store_true")
    args = parser.parse_args()
    if args.reference:
        import tensorflow.compat.v1 as tf

        from tests.oracle import contrib_formulas

        tf.contrib = contrib_formulas
    else:
        import estimator_core

        estimator_core.install(contrib=True)
    runs = {project: in_a_child(project) for project in args.projects or PROJECTS}
    for project in ON_SHARDS:
        if not args.reference and project in runs:
            runs[f"{project} with use_tpu"] = in_a_child(project, use_tpu=True)
    json.dump(runs, sys.stdout, indent=None, sort_keys=True)
    print()
    return int(any("error" in seen for seen in runs.values()))


if __name__ == "__main__":
    sys.exit(main())
