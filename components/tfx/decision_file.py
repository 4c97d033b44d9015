"""The decision threshold of a binary classifier, in a file next to its SavedModel."""

import json
import os
from typing import Any

DECISION_FILE = "decision.json"
"""Name of the file in `assets.extra/`; `threshold` is the probability above which the model says yes."""

DEFAULT_THRESHOLD = 0.5
"""Threshold of a model without that file."""


def read_decision(saved_model: str) -> dict[str, Any] | None:
    """Returns the content of a SavedModel's decision file, or None."""
    import tensorflow as tf  # here, since a plan needs the names and no TensorFlow

    path = os.path.join(saved_model, "assets.extra", DECISION_FILE)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as stream:
        decision: dict[str, Any] = json.loads(stream.read())
    return decision
