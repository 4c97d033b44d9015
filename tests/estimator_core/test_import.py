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


@pytest.mark.end_to_end("a process that imports TensorFlow")
def test_the_import_loads_nothing_heavy_and_devices_can_be_set_up_after_it():
    """TensorFlow refuses `set_memory_growth` and others once an operation or a function has been made."""
    printed = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True, cwd=PROJECT)
    added, num_devices = printed.splitlines()
    assert "estimator_core" in json.loads(added)
    assert not [name for name in json.loads(added) if name.partition(".")[0] not in ALLOWED]
    assert num_devices == "2"
