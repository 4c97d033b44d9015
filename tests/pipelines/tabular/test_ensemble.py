"""An ensemble: its weights, its predictions and its checkpoints."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core
from pipelines.tabular.ensemble import (
    Member,
    combined,
    ensemble,
    greedy_weights,
    row_losses,
    write_checkpoint,
    write_mean_checkpoint,
)
from pipelines.tabular.plan import LabelPlan

NUMBER = LabelPlan(column="y", problem_type="regression", values="number")
TWO = LabelPlan(column="y", problem_type="binary", values="text", classes=("no", "yes"))
THREE = LabelPlan(column="y", problem_type="multi-class", values="text", classes=("a", "b", "c"))
LOGITS = {NUMBER: ([2.0], [5.0]), TWO: ([30.0], [-1.0]), THREE: ([1.0, 0.0, -40.0], [-2.0, 3.0, 0.5])}


def head(label):
    names = list(label.classes)
    if not names:
        return estimator_core.RegressionHead()
    if len(names) == 2:
        return estimator_core.BinaryClassHead(label_vocabulary=names)
    return estimator_core.MultiClassHead(len(names), label_vocabulary=names)


def constant(logits, label, model_dir):
    """Returns a trained Estimator whose logits are a variable."""

    def model_fn(features, labels, mode):
        bias = tf.compat.v1.get_variable("bias", initializer=tf.constant(logits, tf.float32))
        tiled = 0.0 * features["x"][:, tf.newaxis] + bias
        step = tf.compat.v1.train.get_global_step()
        return head(label).create_estimator_spec(
            features, mode, logits=tiled, labels=labels, train_op_fn=lambda loss: step.assign_add(1)
        )

    estimator = estimator_core.Estimator(model_fn, model_dir=str(model_dir))
    labels = [next(iter(label.classes or [1.0]))]
    estimator.train(lambda: tf.data.Dataset.from_tensors(({"x": [1.0]}, [labels])), steps=1)
    return estimator


def rows():
    return tf.data.Dataset.from_tensors({"x": [1.0, 2.0]})


def test_the_loss_of_a_row():
    thirds = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    losses = row_losses(thirds, np.array([b"b", b"c"]), THREE)
    assert losses == pytest.approx([-np.log(0.5), -np.log(1e-7)])
    assert row_losses(np.array([[3.0], [-1.0]]), np.array([1, 1]), NUMBER) == pytest.approx([4, 4])


def test_two_models_whose_errors_cancel_share_the_weight_and_a_useless_one_has_none():
    labels = np.array([1.0, 1.0, 1.0, 1.0])
    predictions = {
        "high": np.array([[2.0], [1.0], [2.0], [1.0]]),
        "low": np.array([[0.0], [1.0], [0.0], [1.0]]),
        "far": np.array([[9.0], [9.0], [9.0], [9.0]]),
    }
    weights = greedy_weights(predictions, lambda values: row_losses(values, labels, NUMBER).mean())
    assert weights == {"high": 0.5, "low": 0.5, "far": 0.0}
    assert combined(predictions, weights).ravel().tolist() == [1, 1, 1, 1]


def test_weights_are_near_the_best_of_all_weights():
    """Independent errors of variances 1, 4 and 16: the best weights are as 1, 1/4 and 1/16."""
    random = np.random.default_rng(3)
    predictions = {str(size): random.normal(scale=size, size=(200_000, 1)) for size in (1, 2, 4)}
    weights = greedy_weights(predictions, lambda values: np.square(values).mean())
    assert list(weights.values()) == pytest.approx([16 / 21, 4 / 21, 1 / 21], abs=0.03)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("label", [NUMBER, TWO, THREE])
def test_an_ensemble_predicts_the_weighted_mean_and_is_evaluated(tmp_path, label):
    parts = [constant(one, label, tmp_path / str(at)) for at, one in enumerate(LOGITS[label])]
    weights = (0.75, 0.25)
    members = [
        Member(f"member_{at}", part, part.latest_checkpoint(), weight)
        for at, (part, weight) in enumerate(zip(parts, weights, strict=True))
    ]
    write_checkpoint(members, str(tmp_path / "all"), 7)
    whole = ensemble(members, label, str(tmp_path / "all"), parts[0].config)
    assert whole.get_variable_value("global_step") == 7
    key = "probabilities" if label.classes else "predictions"
    means = sum(w * next(part.predict(rows))[key] for w, part in zip(weights, parts, strict=True))
    predicted = list(whole.predict(rows))
    assert predicted[1][key] == pytest.approx(means, rel=1e-6)
    truth = label.classes[-1] if label.classes else 1.0
    metrics = whole.evaluate(lambda: tf.data.Dataset.from_tensors(({"x": [1.0]}, [[truth]])))
    expected = -np.log(means[-1]) if label.classes else (means[0] - 1) ** 2
    assert metrics["average_loss"] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="An ensemble can't be trained further"):
        whole.train(lambda: tf.data.Dataset.from_tensors(({"x": [1.0]}, [[truth]])), steps=1)


def test_the_mean_of_linear_models_has_their_mean_logits(tmp_path):
    parts = [constant(one, THREE, tmp_path / str(at)) for at, one in enumerate(LOGITS[THREE])]
    path = write_mean_checkpoint([part.latest_checkpoint() for part in parts], str(tmp_path / "mean"), 5)
    (first, _) = parts[0].predict(rows, checkpoint_path=path)
    assert first["logits"] == pytest.approx([-0.5, 1.5, -19.75])
    assert tf.train.load_checkpoint(path).get_tensor("global_step") == 5
