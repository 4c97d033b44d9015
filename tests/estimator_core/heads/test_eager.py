"""Heads outside of graphs. Values without a derivation are those of tf.estimator 2.15, of the same calls."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import estimator_core as est
from estimator_core.heads import SequentialHeadWrapper

c = tf.constant
BATCHES = [
    ({"w": c([[1.0], [2.0], [0.5], [3.0]])}, c([[1.5], [-2.0], [0.3], [-0.1]]), c([[1], [1], [0], [0]])),
    ({"w": c([[4.0], [1.0]])}, c([[0.2], [-1.0]]), c([[1], [0]])),
]
CLASS_LOGITS = c([[1.0, 0, 2], [0, 2.0, 0], [0.5, 0.1, 0.2]])
CLASS_WEIGHTS = c([[1.0], [3.0], [2.0]])
REGULARIZATION = [c(0.5), c(0.25)]


@pytest.fixture(params=[keras, tf_keras], ids=["keras", "tf_keras"])
def each_keras(request, monkeypatch):
    """`tf.keras` as it is by default, and with `TF_USE_LEGACY_KERAS=1`."""
    monkeypatch.setattr(tf, "keras", request.param)
    return request.param


def with_labels(change):
    return [(features, logits, change(labels)) for features, logits, labels in BATCHES]


def words(labels):
    return tf.gather(c(["no", "yes"]), labels)


def measured(head, batches):
    """Returns the loss of each batch, and the metrics of all."""
    metrics = head.metrics(regularization_losses=REGULARIZATION)
    losses = []
    for features, logits, labels in batches:
        losses.append(head.loss(labels, logits, features, None, REGULARIZATION).numpy().item())
        assert head.update_metrics(metrics, features, logits, labels, None, REGULARIZATION) is metrics
    return losses, {key: metric.result().numpy().item() for key, metric in metrics.items()}


WEIGHTED = {
    "accuracy": 0.782609, "accuracy_baseline": 0.608696, "auc": 0.650794, "auc_precision_recall": 0.784373,
    "average_loss": 0.827953, "label/mean": 0.608696, "precision": 0.909091, "prediction/mean": 0.455351,
    "recall": 0.714286, "regularization_loss": 0.75,
}  # fmt: skip
MULTI_LABEL = {
    "accuracy/positive_threshold_0.4": 0.433333, "auc": 0.70362, "auc/class0": 0.880952, "auc/class2": 0.58,
    "auc_precision_recall": 0.594934, "auc_precision_recall/class0": 0.602284,
    "auc_precision_recall/class2": 0.7, "average_loss": 0.739308,
    "precision/positive_threshold_0.4": 0.433333, "probability_mean/class0": 0.570704,
    "probability_mean/class2": 0.586126, "recall/positive_threshold_0.4": 1.0, "regularization_loss": 0.75,
}  # fmt: skip
THRESHOLDS = {
    "accuracy/positive_threshold_0.3/h": 0.521739, "accuracy/positive_threshold_0.8/h": 0.478261,
    "precision/positive_threshold_0.3/h": 0.588235, "precision/positive_threshold_0.8/h": 1.0,
    "recall/positive_threshold_0.3/h": 0.714286, "recall/positive_threshold_0.8/h": 0.142857,
}  # fmt: skip


def of_mean(average_loss, label, prediction):
    """The metrics of a head for numbers."""
    means = {"label/mean": label, "prediction/mean": prediction}
    return {"average_loss": average_loss, "regularization_loss": 0.75, **means}


WORD_HEAD = est.BinaryClassHead("w", label_vocabulary=["no", "yes"])
MULTI_LABEL_HEAD = est.MultiLabelHead(3, "w", thresholds=[0.4], classes_for_class_based_metrics=[0, 2])
CLASS_BATCHES = ({"w": CLASS_WEIGHTS}, CLASS_LOGITS), ({"w": CLASS_WEIGHTS[:2]}, CLASS_LOGITS[:2])
MULTI = [(*CLASS_BATCHES[0], c([[2], [1], [1]])), (*CLASS_BATCHES[1], c([[1], [1]]))]
MULTI_WORDS = [({}, CLASS_LOGITS, c([["c"], ["b"], ["b"]])), ({}, CLASS_LOGITS[:2], c([["a"], ["b"]]))]
SETS = [
    (*CLASS_BATCHES[0], c([[1, 0, 1], [0, 1, 0], [1, 1, 0]])),
    (*CLASS_BATCHES[1], c([[0, 0, 1], [0, 0, 1]])),
]
PAIRS = [
    ({"w": c([[1.0, 2], [3, 4]])}, c([[1.0, 0], [0, 2]]), c([[1.0, 1], [1, 3]])),
    ({"w": c([[1.0], [3.0]])}, c([[1.0, 0], [0, 2]]), c([[1.0, 1], [1, 3]])),
]
COUNTS = with_labels(lambda labels: c([[1.0], [2], [0], [4]])[: len(labels)])
SHARES = with_labels(lambda labels: c([[1.0], [0.2], [0], [0.4]])[: len(labels)])
NAMED = {f"{key}/h": value for key, value in WEIGHTED.items()} | THRESHOLDS


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("head", "batches", "losses", "metrics"),
    [
        (est.BinaryClassHead("w"), BATCHES, [2.453909, 2.102909], WEIGHTED),
        (est.BinaryClassHead("w", loss_reduction="sum"), BATCHES, [7.565637, 3.455817], WEIGHTED),
        (WORD_HEAD, with_labels(words), [2.453909, 2.102909], WEIGHTED),
        (est.BinaryClassHead("w", thresholds=[0.3, 0.8], name="h"), BATCHES, [2.453909, 2.102909], NAMED),
        (est.MultiClassHead(3, "w"), MULTI, [1.978813, 2.31312],
         {"accuracy": 0.7, "average_loss": 0.681268, "regularization_loss": 0.75}),
        (est.MultiClassHead(3, label_vocabulary=["a", "b", "c"]), MULTI_WORDS, [1.392416, 1.573575],
         {"accuracy": 0.6, "average_loss": 0.71488, "regularization_loss": 0.75}),
        (MULTI_LABEL_HEAD, SETS, [1.806248, 2.862167], MULTI_LABEL),
        (est.RegressionHead(2, "w"), PAIRS, [3.0, 2.5], of_mean(0.888889, 1.777778, 0.888889)),
        (est.PoissonRegressionHead(), COUNTS, [4.145198, 2.770544], of_mean(2.93698, 1.666667, 1.410167)),
        (est.LogisticRegressionHead("w"), SHARES, [1.683909, 2.202909],
         of_mean(0.577518, 0.591304, 0.455351)),
    ],
    ids=["binary", "sum", "words", "named", "multi", "multi_words", "multi_label", "regression",
         "poisson", "logistic"],
)  # fmt: skip
def test_losses_and_metrics(each_keras, head, batches, losses, metrics):
    found = measured(head, batches)
    assert found[0] == pytest.approx(losses, abs=1e-5)
    assert found[1] == pytest.approx(metrics, abs=2e-6)


def test_metrics_are_those_of_keras_and_begin_anew_after_a_reset(each_keras):
    metrics = est.BinaryClassHead(thresholds=[0.3]).metrics()
    for key, of_class in {
        "average_loss": "Mean", "label/mean": "Mean", "accuracy": "Accuracy", "auc": "AUC",
        "accuracy_baseline": "Mean", "precision": "Precision", "recall": "Recall",
        "accuracy/positive_threshold_0.3": "BinaryAccuracy",
        "precision/positive_threshold_0.3": "Precision",
    }.items():  # fmt: skip
        assert isinstance(metrics[key], getattr(each_keras.metrics, of_class))
        assert metrics[key].name == key
        assert metrics[key].result().numpy() == 0.0  # no batch yet
    head = est.BinaryClassHead()
    metrics = head.metrics()
    _, logits, labels = BATCHES[0]
    head.update_metrics(metrics, {}, logits, 1 - labels)
    for metric in metrics.values():
        metric.reset_state()
    head.update_metrics(metrics, {}, logits, c([[1], [1], [1], [0]]))
    assert metrics["accuracy_baseline"].result().numpy() == 0.75
    assert metrics["label/mean"].result().numpy() == 0.75


def test_multi_head_adds_up_batches(each_keras):
    heads = [est.BinaryClassHead(name="a"), est.RegressionHead(name="b")]
    head = est.MultiHead(heads, head_weights=[1.0, 2.0])
    _, logits, labels = BATCHES[0]
    both = {"a": labels, "b": labels}, {"a": logits, "b": 2 * logits}
    assert head.loss(*both, {}).numpy() == pytest.approx(0.956773 + 2 * 7.35, abs=1e-5)
    metrics = head.metrics([c(0.5)])
    head.update_metrics(metrics, {}, both[1], both[0], None, [c(0.5)])
    assert {key: metric.result().numpy().item() for key, metric in metrics.items()} == pytest.approx(
        {
            "accuracy/a": 0.5, "accuracy_baseline/a": 0.5, "auc/a": 0.5,
            "auc_precision_recall/a": 0.712318, "average_loss/a": 0.956773, "average_loss/b": 7.35,
            "label/mean/a": 0.5, "label/mean/b": 0.5, "loss/a": 0.956773, "loss/b": 7.35,
            "precision/a": 0.5, "prediction/mean/a": 0.49656, "prediction/mean/b": -0.15,
            "recall/a": 0.5, "regularization_loss/a_b": 0.5,
        },
        abs=2e-6,
    )  # fmt: skip
    # A batch of two examples, of error 1 each: (4 * 7.35 + 2 * 1) / 6.
    second = c([[1.0], [1.0]])
    head.update_metrics(metrics, {}, {"a": second, "b": second}, {"a": 0 * second, "b": 0 * second})
    assert metrics["average_loss/b"].result().numpy() == pytest.approx(31.4 / 6)


def sequence_batch():
    # Cross entropies of the three steps that are no padding: log(1 + e^-1), 1 + that, log(1 + e^2).
    features = {"mask": c([[True, True], [True, False]]), "w": c([[1.0, 2.0], [3.0, 9.0]])}
    return features, c([[[1.0], [-1.0]], [[2.0], [7.0]]]), c([[1, 1], [0, 0]])


SEQUENTIAL = SequentialHeadWrapper(est.BinaryClassHead("w"), "mask", "w")
WEIGHTED_SUM = math.log1p(math.exp(-1)) * 3 + 2 + 3 * math.log1p(math.exp(2))


def test_a_sequential_head_leaves_padding_out(each_keras):
    features, logits, labels = sequence_batch()
    assert SEQUENTIAL.loss(labels, logits, features).numpy() == pytest.approx(WEIGHTED_SUM / 3)
    metrics = SEQUENTIAL.update_metrics(SEQUENTIAL.metrics(), features, logits, labels)
    assert metrics["average_loss"].result().numpy() == pytest.approx(WEIGHTED_SUM / 6)
    assert metrics["accuracy"].result().numpy() == pytest.approx(1 / 6)
    with pytest.raises(ValueError, match="a value for each time step"):
        SEQUENTIAL.loss(labels[:, :1], logits, features)


@pytest.mark.parametrize(
    ("head", "features", "logits", "labels", "loss", "metrics"),
    [
        # (1 + 9) / 2
        (est.RegressionHead(), {}, c([[1.0], [3.0]]), c([2.0, 0.0]), 5.0, {"label/mean": 1.0}),
        (est.PoissonRegressionHead(), {}, c([[0.0]]), c([[1.0]]), 1.0, {"prediction/mean": 1.0}),
        (est.LogisticRegressionHead(), {}, c([[0.0]]), c([[0.3]]), math.log(2), {"label/mean": 0.3}),
        (est.BinaryClassHead(), {}, c([[0.0]]), c([[1]]), math.log(2), {"recall": 0.0}),
        (est.MultiClassHead(3), {}, c([[0.0] * 3]), c([[0]]), math.log(3), {"accuracy": 1.0}),
        (est.MultiLabelHead(2), {}, c([[0.0, 0.0]]), c([[0, 1]]), math.log(2), {"auc": 0.5}),
        (
            est.MultiHead([est.RegressionHead(name="a"), est.RegressionHead(name="b")]),
            {}, c([[1.0, 2.0]]), {"a": c([0.0]), "b": c([0.0])}, 5.0, {"loss/b": 4.0},
        ),
        (SEQUENTIAL, *sequence_batch(), WEIGHTED_SUM / 3, {"average_loss": WEIGHTED_SUM / 6}),
    ],
    ids=["regression", "poisson", "logistic", "binary", "multi", "multi_label", "heads", "sequence"],
)  # fmt: skip
def test_each_head_makes_specs_of_eager_tensors(each_keras, head, features, logits, labels, loss, metrics):
    spec = head.create_estimator_spec(features, "eval", logits, labels)
    assert spec.loss.numpy() == pytest.approx(loss)
    found = {key: spec.eval_metric_ops[key].result().numpy().item() for key in metrics}
    assert found == pytest.approx(metrics)

    train = head.create_estimator_spec(features, "train", logits, labels, train_op_fn=tf.negative)
    assert train.train_op.numpy() == pytest.approx(-loss)

    infer = head.create_estimator_spec(features, "infer", logits)
    assert "serving_default" in infer.export_outputs
    for value in infer.predictions.values():
        assert len(value.numpy()) == len(logits)


def test_an_optimizer_has_no_graph_to_work_on():
    settings = {"optimizer": "SGD", "trainable_variables": []}
    with pytest.raises(ValueError, match=r"in a tf.GradientTape, .* optimizer='SGD'"):
        est.RegressionHead().create_estimator_spec({}, "train", c([[1.0]]), c([[2.0]]), **settings)


@pytest.mark.more
def test_a_training_loop_of_ones_own(each_keras):
    """One weight, from 0: the slope of mean((w - 2)^2) is 2 (w - 2), so a step of 0.25 halves it."""
    head, weight = est.RegressionHead(), tf.Variable([[0.0]])
    metrics = head.metrics()

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            logits = x @ weight
            loss = head.loss(labels, logits)
        weight.assign_sub(0.25 * tape.gradient(loss, weight))
        head.update_metrics(metrics, {}, logits, labels)
        return loss

    losses = [step(tf.ones([4, 1]), tf.fill([4, 1], 2.0)).numpy() for _ in range(3)]
    assert losses == pytest.approx([4.0, 1.0, 0.25])
    assert weight.numpy().item() == pytest.approx(1.75)
    assert metrics["average_loss"].result().numpy() == pytest.approx(5.25 / 3)
    assert metrics["prediction/mean"].result().numpy() == pytest.approx((0 + 1 + 1.5) / 3)


def test_words_in_a_function_that_runs_again(each_keras):
    head = est.BinaryClassHead(label_vocabulary=["no", "yes"])
    metrics = head.metrics()

    @tf.function(autograph=False)  # which takes 1.5 s to convert the head
    def loss(labels, logits):
        head.update_metrics(metrics, {}, logits, labels)
        return head.loss(labels, logits)

    logits = c([[0.3], [-1.0]])
    found = [loss(c(labels), logits).numpy() for labels in (["yes", "no"], ["no", "no"])]
    of = [math.log1p(math.exp(value)) for value in (-0.3, 0.3, -1.0)]
    assert found == pytest.approx([(of[0] + of[2]) / 2, (of[1] + of[2]) / 2])
    assert metrics["accuracy"].result().numpy() == 0.75


@pytest.mark.parametrize(
    ("head", "labels", "message"),
    [
        (est.BinaryClassHead(), [[2.0], [0.0]], r"<= n_classes - 1 \(1\). Received labels: \[2.0 0.0\]"),
        (est.BinaryClassHead(label_vocabulary=["a", "b"]), [["z"], ["a"]], "in label_vocabulary"),
        (est.LogisticRegressionHead(), [[1.5], [0.0]], r"in range \[0, 1\]"),
        (est.PoissonRegressionHead(), [[-1.0], [0.0]], "0 or more"),
        (est.MultiLabelHead(2), [[0.0, 2.0], [1.0, 1.0]], "must be 0 or 1"),
        (est.RegressionHead(), [[1.0, 2.0]], "Expected labels dimension=1"),
    ],
    ids=["binary", "words", "logistic", "poisson", "multi_label", "regression"],
)  # fmt: skip
def test_labels_that_do_not_fit_are_errors_at_once(head, labels, message):
    logits = tf.zeros([2, head.logits_dimension])
    with pytest.raises(ValueError, match=message):
        head.loss(c(labels), logits, features={})
    with pytest.raises(ValueError, match=message):
        head.update_metrics(head.metrics(), {}, logits, c(labels))
    long = np.arange(30)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"\[0 1 2 .* 18 19 \.\.\.\]"):
        est.MultiClassHead(3).loss(long, tf.zeros([30, 3]))


def test_losses_are_written_where_a_writer_is(tmp_path):
    head = est.MultiHead([est.RegressionHead(name="a"), est.RegressionHead(name="b")])

    def train():
        labels = {"a": c([0.0]), "b": c([0.0])}
        head.create_estimator_spec({}, "train", c([[1.0, 2.0]]), labels, train_op_fn=tf.identity)

    train()
    with tf.summary.create_file_writer(str(tmp_path)).as_default(step=7):
        train()
    (file,) = tmp_path.iterdir()
    written = {
        value.tag: (event.step, tf.make_ndarray(value.tensor).item())
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }
    assert written == {"loss": (7, 5.0), "loss/a": (7, 1.0), "loss/b": (7, 4.0)}
