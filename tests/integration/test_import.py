"""Importing the pipeline runs nothing of TensorFlow yet."""

import subprocess
import sys

import pytest

_PROGRAM = """
import tensorflow as tf
import components, pipelines.__main__, pipelines.cli.app
import pipelines.runs.definitions.csv_to_serving, pipelines.runs.run
device = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
print(len(tf.config.list_logical_devices("CPU")))
"""


@pytest.mark.more
def test_devices_can_be_set_up_after_the_import():
    """A process that is forked needs it too: threads do not go with it."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "2"
