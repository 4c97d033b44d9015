import math

import keras
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.v1 import heads
from tests.estimator_core.programs import Fetching


@pytest.mark.parametrize(
    ("n_classes", "kind", "logits"), [(2, est.BinaryClassHead, 1), (3, est.MultiClassHead, 3)]
)
def test_a_classifier_head_reduces_its_weighted_loss(n_classes, kind, logits):
    features = {"w": [1.0, 3.0]}
    for reduction, expected in (("weighted_sum", 4.0), ("weighted_mean", 1.0)):
        head = heads.classifier_head(n_classes, "w", None, reduction)
        assert isinstance(head, kind)
        assert (head.logits_dimension, head.loss_reduction) == (logits, reduction)
        # All logits are 0: the loss of an example is log(number of classes).
        loss = head.loss([[0], [1]], tf.zeros([2, logits]), features)
        assert loss.numpy() == pytest.approx(expected * math.log(n_classes))


def test_words_of_classifiers():
    head = heads.classifier_head(2, None, ["no", "yes"], "weighted_sum")
    assert head.predictions(tf.constant([[3.0]]))["classes"].numpy().tolist() == [[b"yes"]]


def test_a_regressor_head_sums_its_weighted_loss():
    head = heads.regressor_head(2, "w", "weighted_sum")
    assert (head.logits_dimension, head.loss_reduction) == (2, "weighted_sum")
    labels, logits = [[1.0, 2.0], [0.0, 0.0]], tf.constant([[0.0, 0.0], [1.0, 3.0]])
    # 2 * (1 + 4) + 0.5 * (1 + 9)
    assert head.loss(labels, logits, {"w": [2.0, 0.5]}).numpy() == pytest.approx(15.0)


@pytest.mark.more
def test_the_area_under_precision_and_recall_is_summed_by_trapezoids():
    """As the metric of TensorFlow 1 has it, and not that of `estimator_core.BinaryClassHead`."""
    labels, logits = [[1], [0], [1], [0], [1]], [[2.0], [1.0], [0.5], [-1.0], [-2.0]]

    def area(head):
        with tf.Graph().as_default(), tf1.Session() as session:
            metrics = head.update_metrics(head.metrics(), {}, tf.constant(logits), labels)
            _, expected_update = tf1.metrics.auc(
                labels, tf.sigmoid(logits), curve="PR", summation_method="trapezoidal"
            )
            session.run(tf1.local_variables_initializer())
            updates = {key: metric.as_pair()[1] for key, metric in metrics.items()}
            found, expected = session.run([updates, expected_update])
            return set(found), found["auc_precision_recall"], expected

    keys, found, expected = area(heads.classifier_head(2, None, None, "weighted_sum"))
    assert found == pytest.approx(expected)
    other_keys, interpolated, _ = area(est.BinaryClassHead())
    metric = keras.metrics.AUC(curve="PR")
    metric.update_state(labels, tf.sigmoid(logits))
    assert interpolated == pytest.approx(metric.result(), abs=1e-5)
    assert found != pytest.approx(interpolated, abs=1e-3)
    assert keys == other_keys


@pytest.mark.sampled(2)
@pytest.mark.parametrize("by", ["optimizer", "train_op_fn"])
@pytest.mark.parametrize(
    ("name", "powers", "tag"),
    [
        (None, ["head/beta1_power", "head/beta2_power"], "average_loss"),
        ("own", ["own/beta1_power", "own/beta2_power"], "average_loss/own"),
    ],
)
def test_a_name_is_that_of_the_optimizers_variables_and_of_every_summary_and_metric(
    session, name, powers, tag, by
):
    """As in 2.15, whose checkpoints have the former."""
    head = heads.CannedBinaryClassHead(
        loss_reduction="weighted_sum", loss_fn=lambda labels, logits: 3.0 + labels + 0.0 * logits, name=name
    )
    tf1.train.create_global_step()
    weight = tf1.get_variable("weight", [1, 1], initializer=tf1.zeros_initializer())
    logits = tf.matmul([[1.0], [2.0]], weight)
    optimizer = tf1.train.AdamOptimizer()
    training = {"optimizer": optimizer, "train_op_fn": optimizer.minimize}[by]
    head.create_estimator_spec({}, "train", logits, labels=[[0], [1]], **{by: training})
    names = [variable.op.name for variable in tf1.global_variables()]
    assert [found for found in names if "power" in found] == powers
    session.run(tf1.global_variables_initializer())
    summary = tf1.Summary.FromString(session.run(tf1.summary.merge_all()))
    # The loss_fn gives 3 and 4.
    values = {value.tag: value.simple_value for value in summary.value}
    assert values == {tag: 3.5, tag.replace("average_", ""): 7.0}
    spec = head.create_estimator_spec({}, "eval", logits, labels=[[0], [1]])
    suffix = f"/{name}" if name else ""
    assert {f"auc_precision_recall{suffix}", tag} <= set(spec.eval_metric_ops)
    assert all(key.endswith(suffix) for key in spec.eval_metric_ops)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: heads.classifier_head(1, None, None, "weighted_sum"), "n_classes"),
        (lambda: heads.classifier_head(2, None, None, "none"), "Invalid loss_reduction"),
        (lambda: heads.regressor_head(0, None, "weighted_sum"), "label_dimension"),
        (lambda: heads.regressor_head(1, None, "none"), "Invalid loss_reduction"),
    ],
)
def test_what_can_not_work_is_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_each_replica_names_the_sum_that_its_mean_divides(tmp_path):
    def sums(graph):
        return [f"{replica}linear/head/weighted_loss/Sum:0" for replica in ("", "replica_1/")]

    def input_fn():
        features = {"x": [[1.0]] * 4, "w": [[2.0], [0.5], [1.0], [4.0]]}
        return tf.data.Dataset.from_tensor_slices((features, [[1.0], [3.0], [2.0], [0.0]])).batch(2)

    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    estimator = est.v1.LinearRegressor(
        [tf.feature_column.numeric_column("x")],
        weight_column="w",
        loss_reduction="weighted_mean",
        config=est.RunConfig(str(tmp_path), train_distribute=strategy),
    )
    hook = Fetching(sums)
    estimator.train(input_fn, hooks=[hook], steps=1)
    # All logits are 0: 2 * 1^2 + 0.5 * 3^2, and 1 * 2^2 + 4 * 0^2.
    assert hook.values == [[6.5, 4.0]]
