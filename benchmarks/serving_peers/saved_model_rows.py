"""Predicts rows by a SavedModel, as a program does that has TensorFlow and no server of ours."""

import os

import tensorflow as tf


class SavedModelRows:
    """The model in the folder that the variable SAVED_MODEL names."""

    def __init__(self):
        self._loaded = tf.saved_model.load(os.environ["SAVED_MODEL"])  # must not be collected
        self._predict = self._loaded.signatures["serving_default"]
        self.scores([{}])  # the first prediction is slow

    def scores(self, rows):
        """Returns the probabilities of the classes for each row, a dict of columns."""
        examples = [_example(row).SerializeToString() for row in rows]
        return self._predict(inputs=tf.constant(examples, tf.string))["scores"].numpy().tolist()


def _example(row):
    example = tf.train.Example()
    features = example.features.feature
    for name, value in row.items():
        if isinstance(value, str):
            features[name].bytes_list.value.append(value.encode())
        elif isinstance(value, int):
            features[name].int64_list.value.append(value)
        elif value is not None:
            features[name].float_list.value.append(value)
    return example
