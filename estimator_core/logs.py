"""The logger of the whole package.

It is TensorFlow's own logger, which tf.estimator wrote to: `tf.get_logger().setLevel(...)`, log filters and
scripts that look for "loss = ..., step = ..." keep working, and the lines of TensorFlow's session hooks
appear in the same stream.
"""

import logging

logger = logging.getLogger("tensorflow")
