"""Files next to a SavedModel: a classifier's decision threshold, and a regressor's intervals."""

import json
import os
from typing import Any

DECISION_FILE = "decision.json"
"""Name of the file in `assets.extra/`; `threshold` is the probability above which the model says yes."""

INTERVAL_FILE = "interval.json"
"""Name of the file with the prediction intervals, see `Interval` of the generic models."""

DEFAULT_THRESHOLD = 0.5
"""Threshold of a model without that file."""


def read_model_file(saved_model: str, name: str) -> dict[str, Any] | None:
    """Returns the content of a file of a SavedModel, or None."""
    import tensorflow as tf  # here, since a plan needs the names and no TensorFlow

    path = os.path.join(saved_model, "assets.extra", name)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as stream:
        content: dict[str, Any] = json.loads(stream.read())
    return content
