import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.checkpoints.warm_start_report import warm_start
from estimator_core.checkpoints.warm_start_settings import as_settings

tf1 = tf.compat.v1


def test_the_variables_of_a_saved_model(make_estimator, input_fn, tmp_path):
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([1])})
    trained = make_estimator().train(input_fn, steps=3)  # w = 1.75
    path = trained.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    with tf.Graph().as_default(), tf1.Session() as session:
        weight = tf1.get_variable("weight", initializer=0.0)
        warm_start(as_settings(path))
        session.run(tf1.global_variables_initializer())
        assert session.run(weight) == 1.75


def test_names_of_variables_may_have_changed(make_estimator, input_fn):
    trained = make_estimator().train(input_fn, steps=2)  # w = 1.5
    with tf.Graph().as_default(), tf1.Session() as session:
        renamed = tf1.get_variable("renamed", initializer=0.0)
        other = tf1.get_variable("other", initializer=7.0)
        names = {"renamed": "weight"}
        warm_start(est.WarmStartSettings(trained.model_dir, "renamed", var_name_to_prev_var_name=names))
        session.run(tf1.global_variables_initializer())
        assert session.run([renamed, other]) == [1.5, 7.0]


def test_a_variable_that_the_checkpoint_lacks_is_named(make_estimator, input_fn):
    trained = make_estimator().train(input_fn, steps=2)
    with tf.Graph().as_default():
        tf1.get_variable("absent", initializer=0.0)
        with pytest.raises(ValueError, match="absent"):
            warm_start(as_settings(trained.model_dir))
