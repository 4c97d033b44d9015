"""The logger of the whole package.

It is TensorFlow's own, the one that tf.estimator wrote to, so that `tf.get_logger().setLevel(...)`,
log filters and scripts that look for "loss = ..., step = ..." go on working; TensorFlow's session
hooks write there too, and one training run stays one stream.
"""

import logging

logger = logging.getLogger("tensorflow")
