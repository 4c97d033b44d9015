"""What `import estimator_core` brings with it: a light import that needs nothing but TensorFlow."""

import json
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
import keras, tensorflow
before = set(sys.modules)
import estimator_core
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# TensorFlow loads parts of itself only when they are named. Keras, which it requires, it loads when it
# can, and goes on without when that fails.
ALLOWED = {"estimator_core", "tensorflow"}


def test_the_import_loads_nothing_heavy():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    added = json.loads(done.stdout.splitlines()[-1])
    assert "estimator_core" in added
    others = [name for name in added if name.partition(".")[0] not in ALLOWED]
    assert not others
