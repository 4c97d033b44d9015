"""Two CPU devices for the tests of tf.distribute; what asks for none goes on using the first."""

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
