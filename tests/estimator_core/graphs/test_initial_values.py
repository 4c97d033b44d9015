"""Variables are initialized after those that their initial values are read from."""

import tensorflow as tf

import estimator_core as est

tf1 = tf.compat.v1


def ones_and_threes():
    return tf.data.Dataset.from_tensors(({"x": [1.0, 3.0]}, [0.0, 0.0])).repeat(2)


def test_variables_that_start_from_others_are_initialized_after_them(tmp_path):
    # Each starts one above the one before: all at once, one of so many would come too early.
    def model_fn(features, labels, mode):
        with tf1.variable_scope("", use_resource=True):
            last = tf1.get_variable("v0", [], initializer=tf1.initializers.zeros())
            for number in range(1, 30):
                value = last.read_value() + 1.0
                last = tf.Variable(value, name=f"v{number}", trainable=False)
        scaffold = tf1.train.Scaffold(init_fn=lambda _, session: called.append(session.run(last)))
        train_op = tf1.train.get_global_step().assign_add(1)
        loss = last + 0.0 * tf.reduce_sum(features["x"])
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

    called = []
    estimator = est.Estimator(model_fn, str(tmp_path))
    assert estimator.evaluate(ones_and_threes)["loss"] == 29.0
    estimator.train(ones_and_threes, steps=1)
    assert estimator.get_variable_value("v29") == 29.0
    assert called == [29.0, 29.0]
