"""What `import estimator_core` brings with it: a light import that needs nothing but TensorFlow."""

import json
import pathlib
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize(
    "line", ["import estimator_core", "import estimator_core; estimator_core.install()"]
)
def test_devices_can_be_set_up_after_the_import(line):
    """What TensorFlow refuses once an operation or a function has been made: `set_memory_growth` too."""
    program = f"""
import tensorflow
{line}
device = tensorflow.config.list_physical_devices("CPU")[0]
setting = tensorflow.config.LogicalDeviceConfiguration()
tensorflow.config.set_logical_device_configuration(device, [setting] * 2)
print(len(tensorflow.config.list_logical_devices("CPU")))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    assert done.stdout.split()[-1] == "2"
