"""WeightedHead around a head of one's own: two losses for each example, |label - logit|."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.heads.metrics import mean
from estimator_core.heads.weighted import WeightedHead


class PairHead(WeightedHead):
    logits_dimension = 2

    def __init__(self, weight_column=None, loss_reduction="sum_over_batch_size", loss_fn=None, name=None):
        super().__init__(weight_column, loss_reduction, loss_fn, name, loss_dimension=2)

    def processed_labels(self, labels, logits):
        return tf.cast(labels, tf.float32)

    def own_loss(self, labels, logits):
        return tf.abs(labels - logits)

    def predictions(self, logits, keys=None):
        return {"pair": logits}

    def own_metrics(self):
        return {"logit/mean": mean("logit_mean")}

    def metric_values(self, labels, logits):
        yield "logit/mean", logits


LOGITS = tf.constant([[1.0, 3.0], [0.0, 6.0]])
LABELS = [[0, 1], [0, 2]]  # the losses are 1 and 2, 0 and 4
FEATURES = {"w": [[3.0], [1.0]]}  # weighted: 3 and 6, 0 and 4


def evaluated(head, features=None, regularization_losses=None):
    with tf.Graph().as_default():
        logits = tf.constant([[1.0, 3.0], [0.0, 6.0]])
        losses = [tf.constant(value) for value in regularization_losses or ()] or None
        found = head.metrics(regularization_losses=losses)
        updated = head.update_metrics(found, features, logits, LABELS, regularization_losses=losses)
        assert updated is found
        with tf1.Session() as session:
            session.run(tf1.local_variables_initializer())
            session.run([metric.as_pair()[1] for metric in found.values()])
            return session.run({key: metric.result() for key, metric in found.items()})


def test_the_loss_is_weighted_and_reduced():
    assert PairHead().loss(LABELS, LOGITS).numpy() == 7 / 4
    assert PairHead("w").loss(LABELS, LOGITS, FEATURES).numpy() == 13 / 4
    assert PairHead("w", "sum").loss(LABELS, LOGITS, FEATURES).numpy() == 13.0
    with_regularization = PairHead().loss(LABELS, LOGITS, regularization_losses=[tf.constant(0.5)])
    assert with_regularization.numpy() == 7 / 4 + 0.5
    # The settings can be read.
    head = PairHead("w", "sum", name="pair")
    assert (head.name, head.loss_reduction) == ("pair", "sum")
    assert (PairHead().name, PairHead().loss_reduction) == (None, "sum_over_batch_size")


def test_metrics_are_weighted():
    assert evaluated(PairHead()) == {"average_loss": 7 / 4, "logit/mean": 10 / 4}
    # The weights of both values of an example add up to 8: (3 * (1 + 3) + 1 * (0 + 6)) / 8.
    assert evaluated(PairHead("w"), FEATURES) == {"average_loss": 13 / 8, "logit/mean": 18 / 8}
    # The sum of regularization losses is a metric without weights.
    found = evaluated(PairHead("w", name="pair"), FEATURES, [0.5, 0.25])
    assert found == {"average_loss/pair": 13 / 8, "logit/mean/pair": 18 / 8, "regularization_loss/pair": 0.75}


def test_a_loss_fn_replaces_the_loss_and_its_metric_with_as_many_losses():
    def loss_fn(labels, logits, loss_reduction, features):
        assert loss_reduction == "sum"
        return features["factor"] * tf.square(labels - logits)  # 1 and 4, 0 and 16, times 10

    head = PairHead(loss_reduction="sum", loss_fn=loss_fn)
    assert head.loss(LABELS, LOGITS, {"factor": 10.0}).numpy() == 210.0
    assert evaluated(head, {"factor": 10.0})["average_loss"] == 210 / 4
    head = PairHead(loss_fn=lambda labels, logits: tf.zeros([2, 1]))
    with pytest.raises(ValueError, match=r"losses of shape \(2, 2\)"):
        head.loss(LABELS, LOGITS)


@pytest.mark.parametrize("size", [1, 3])
def test_logits_have_as_many_values_as_the_head_wants(size):
    with pytest.raises(ValueError, match="logits_dimension=2"):
        PairHead().loss(LABELS, tf.zeros([2, size]))
    with pytest.raises(ValueError, match="logits_dimension=2"):
        PairHead().update_metrics(PairHead().metrics(), {}, tf.zeros([2, size]), LABELS)
