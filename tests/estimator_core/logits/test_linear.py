import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.logits import linear_logit_fn_builder

fc = tf.feature_column


@pytest.mark.parametrize("units", [1, 3])
def test_summaries_show_the_share_of_zero_weights_and_the_bias(units, session):
    columns = [fc.numeric_column("a"), fc.categorical_column_with_identity("b", 3)]
    features = {"a": tf.constant([1.0]), "b": tf.constant([0])}
    logits = linear_logit_fn_builder(units, columns)(features, "train")
    assert logits.shape.as_list() == [1, units]
    session.run(tf1.global_variables_initializer())
    first = tf1.trainable_variables()[0]
    assert first.op.name == "linear/linear_model/a/weights"
    first.load(np.ones([1, units], np.float32), session)
    written = session.run(tf1.get_collection(tf1.GraphKeys.SUMMARIES))
    values = {value.tag: value for each in written for value in tf1.Summary.FromString(each).value}
    # One weight of a, three of b: three quarters are zero. A histogram once there are several.
    assert values["fraction_of_zero_weights"].simple_value == pytest.approx(0.75)
    assert values["bias"].WhichOneof("value") == ("simple_value" if units == 1 else "histo")
