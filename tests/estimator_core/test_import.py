"""`import estimator_core` is light: it needs nothing but TensorFlow."""

import json
import pathlib
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
import keras, tensorflow as tf
before = set(sys.modules)
import estimator_core
print(json.dumps(sorted(set(sys.modules) - before)))
estimator_core.install()
device = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
print(len(tf.config.list_logical_devices("CPU")))
"""
# TensorFlow loads parts of itself only when they are named. Keras, which it requires, it loads when it
# can, and goes on without when that fails. Not every TensorFlow has loaded Python's own threads.
ALLOWED = {"concurrent", "estimator_core", "tensorflow"}


@pytest.fixture(scope="module")
def printed():
    """The output of the program, line by line."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    return done.stdout.splitlines()


def test_the_import_loads_nothing_heavy(printed):
    added = json.loads(printed[0])
    assert "estimator_core" in added
    others = [name for name in added if name.partition(".")[0] not in ALLOWED]
    assert not others


def test_devices_can_be_set_up_after_the_import(printed):
    """TensorFlow refuses `set_memory_growth` and others once an operation or a function has been made."""
    assert printed[1] == "2"
