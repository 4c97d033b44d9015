import pytest
import tensorflow as tf

import estimator_core as est


def test_it_passes_what_is_asked_for():
    def logit_fn(features, params):
        return features * params["factor"]

    logits = est.experimental.call_logit_fn(logit_fn, tf.constant([2.0]), "train", {"factor": 3.0}, None)
    assert logits.numpy() == [6.0]
    by_head = est.experimental.call_logit_fn(
        lambda features: {"a": features}, tf.constant([2.0]), "train", {}, None
    )
    assert by_head.keys() == {"a"}


def test_logits_must_be_tensors():
    with pytest.raises(ValueError, match=r"\[1\]"):
        est.experimental.call_logit_fn(lambda features: [1], None, "train", {}, None)
