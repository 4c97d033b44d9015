import inspect

import keras
import numpy as np
import tensorflow as tf

import estimator_core
from estimator_core import v1


def test_checkpoints_are_name_based_unless_asked_otherwise(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="dense")])
    model.compile("sgd", "mse")
    estimator = v1.model_to_estimator(model, model_dir=tmp_path)
    estimator.train(lambda: tf.data.Dataset.from_tensors((np.ones([2, 1]), np.ones([2, 1]))))
    assert "_CHECKPOINTABLE_OBJECT_GRAPH" not in estimator.get_variable_names()
    assert "dense/kernel" in estimator.get_variable_names()


def test_the_arguments_are_those_of_the_other_one():
    ours = inspect.signature(v1.model_to_estimator).parameters
    theirs = inspect.signature(estimator_core.model_to_estimator).parameters
    assert list(ours) == list(theirs)
    assert (ours["checkpoint_format"].default, theirs["checkpoint_format"].default) == ("saver", "checkpoint")
