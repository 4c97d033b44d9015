import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.boosted_trees.boosting import BoostingState
from estimator_core.boosted_trees.forest import constant_trees
from estimator_core.boosted_trees.forest_variables import ForestAssignment, ForestVariables, read_checkpoint


def state(trees, bias):
    return BoostingState(constant_trees(trees), np.array(bias), 2, 5, 1)


def test_values_that_are_assigned_are_saved_and_restored_whatever_their_length(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        variables = ForestVariables(logits_dimension=2)
        assignment = ForestAssignment(variables)
        session.run(tf1.global_variables_initializer())
        new = variables.read(session)
        assert (new.forest.num_trees, new.bias.tolist()) == (0, [0, 0])
        assert (new.finished, new.steps_in_tree, new.warm_started) == (0, 0, 0)
        assignment.run(session, state(4, [0.1, 0.2]))
        path = tf1.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf1.Session() as session:
        variables = ForestVariables(logits_dimension=2)
        tf1.train.Saver().restore(session, path)
        restored = variables.read(session)
    for found in (restored, read_checkpoint(path)):
        assert found.bias.tolist() == [0.1, 0.2]  # float64
        assert (found.finished, found.steps_in_tree, found.warm_started) == (2, 5, 1)
        np.testing.assert_array_equal(found.forest.left, [0, 1, 2, 3])


def test_trees_for_another_number_of_logits_are_refused(session):
    variables = ForestVariables(logits_dimension=3)
    session.run(tf1.global_variables_initializer())
    ForestAssignment(variables).run(session, state(4, [0.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match="Received: 4 trees, 3 logits"):
        variables.read(session)


def test_a_checkpoint_of_another_model_is_refused(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    assert isinstance(estimator, est.Estimator)
    with pytest.raises(ValueError, match="no boosted trees"):
        read_checkpoint(estimator.latest_checkpoint())
