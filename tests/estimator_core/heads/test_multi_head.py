import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.heads.fresh_graph import evaluated, run, trained
from tests.estimator_core.programs import batch_of, zeros

# Price 1 and 0; probabilities 1/4 and 3/4 of being sold.
LOG_3 = np.log(3.0)
LOGITS = np.array([[1.0, -LOG_3], [0.0, LOG_3]], np.float32)
LABELS = {"price": np.array([3.0, 2.0], np.float32), "sold": np.array([0, 0])}
PRICE_LOSS = (4 + 4) / 2
SOLD_LOSS = (0.287682 + 1.386294) / 2  # -log(3/4), -log(1/4)


def make_head(head_weights=None):
    return est.MultiHead([est.RegressionHead(name="price"), est.BinaryClassHead(name="sold")], head_weights)


def by_head():
    return {"price": tf.constant(LOGITS[:, :1]), "sold": tf.constant(LOGITS[:, 1:])}


def test_name_dimension_and_reduction():
    head = make_head()
    assert head.name == "price_sold"
    assert head.logits_dimension == 2
    assert head.loss_reduction == "sum_over_batch_size"


@pytest.mark.parametrize("make_logits", [lambda: tf.constant(LOGITS), by_head])
def test_the_loss_is_a_weighted_sum(make_logits):
    plain = run(lambda: make_head().loss(LABELS, make_logits()))
    assert plain == pytest.approx(PRICE_LOSS + SOLD_LOSS, rel=1e-5)
    head = make_head([1.0, 10.0])
    found = run(lambda: head.loss(LABELS, make_logits(), regularization_losses=[tf.constant(0.5)]))
    assert found == pytest.approx(PRICE_LOSS + 10 * SOLD_LOSS + 0.5, rel=1e-5)


@pytest.mark.parametrize("make_logits", [lambda: tf.constant(LOGITS), by_head])
def test_predictions_by_head(make_logits):
    found = run(lambda: make_head().predictions(make_logits()))
    np.testing.assert_array_equal(found["price", "predictions"], [[1.0], [0.0]])
    np.testing.assert_allclose(found["sold", "logistic"], [[0.25], [0.75]], rtol=1e-6)
    assert {name for name, _ in found} == {"price", "sold"}


def test_predictions_can_be_selected_by_head_and_key():
    head = make_head()
    wanted = [("sold", "class_ids")]
    found = run(lambda: head.predictions(tf.constant(LOGITS), keys=wanted))
    assert found["sold", "class_ids"].tolist() == [[0], [1]]
    assert len(found) == 1
    with pytest.raises(ValueError, match="keys must be among"):
        run(lambda: head.predictions(tf.constant(LOGITS), keys=[("price", "logistic")]))


def test_metrics_of_all_heads():
    found = evaluated(make_head([1.0, 10.0]), LOGITS, LABELS, regularization_losses=[0.5])
    expected = {
        "regularization_loss/price_sold": 0.5,
        "loss/price": PRICE_LOSS,
        "average_loss/price": PRICE_LOSS,
        "label/mean/price": 2.5,
        "loss/sold": SOLD_LOSS,
        "accuracy/sold": 0.5,
        "prediction/mean/sold": 0.5,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_rows_weighs_nothing_in_the_loss_of_a_head(session):
    logits = tf1.placeholder_with_default(LOGITS, [None, 2])
    labels = {name: tf1.placeholder_with_default(value, [None]) for name, value in LABELS.items()}
    spec = make_head().create_estimator_spec({}, "eval", logits, labels=labels)
    value, update = spec.eval_metric_ops["loss/price"]
    session.run(tf1.local_variables_initializer())
    session.run(update)
    session.run(update, {logits: LOGITS[:0], **{labels[key]: LABELS[key][:0] for key in LABELS}})
    assert session.run(value) == pytest.approx(PRICE_LOSS)


def test_summaries_and_the_training_step():
    def build():
        bias = zeros("bias", [1, 2])
        settings = {"optimizer": "SGD", "regularization_losses": [tf.constant(0.5)]}
        spec = make_head().create_estimator_spec({}, "train", tf.tile(bias, [2, 1]), LABELS, **settings)
        tags = [tensor.op.name for tensor in tf1.get_collection(tf1.GraphKeys.SUMMARIES)]
        assert tags == ["loss/price", "loss/sold", "loss", "regularization_loss"]
        return spec, bias

    # Slopes: 2 * (0 - 2.5) and sigmoid(0) - 0; the learning rate is 0.01.
    np.testing.assert_allclose(trained(build), [[0.05, -0.005]], rtol=1e-5)


def test_only_the_spec_writes_the_summaries_of_a_loss(graph):
    head, logits = make_head(), tf.constant(LOGITS)
    head.loss(LABELS, logits, {}, "train")
    assert tf1.get_collection(tf1.GraphKeys.SUMMARIES) == []
    head.create_estimator_spec({}, "train", logits, LABELS, train_op_fn=lambda loss: loss)
    serialized = tf1.summary.merge_all()
    with tf1.Session() as session:
        summary = tf1.Summary.FromString(session.run(serialized))
    assert [value.tag for value in summary.value] == ["loss/price", "loss/sold", "loss"]


def test_export_outputs_are_those_of_each_head_and_a_common_predict(graph):
    outputs = make_head().create_estimator_spec({}, "infer", tf.constant(LOGITS)).export_outputs
    of_price = {"price", "price/regression", "price/predict"}
    of_sold = {"sold", "sold/classification", "sold/regression", "sold/predict"}
    assert set(outputs) == {"serving_default", *of_price, *of_sold, "predict"}
    assert outputs["serving_default"] is outputs["price"] is outputs["price/regression"]
    assert {"price/predictions", "sold/logistic"} < set(outputs["predict"].outputs)


@pytest.mark.more
def test_it_trains_predicts_and_exports_its_evaluation(tmp_path):
    size = tf.feature_column.numeric_column("size")
    estimator = est.LinearEstimator(make_head(), [size], model_dir=str(tmp_path))
    input_fn = batch_of({"size": [[1.0], [2.0]]}, LABELS, repeat=3)
    estimator.train(input_fn)
    row = next(estimator.predict(input_fn, predict_keys=[("sold", "logistic")]))
    assert set(row) == {("sold", "logistic")}

    def eval_receiver_fn():
        features = {"size": tf1.placeholder(tf.float32, [None, 1])}
        labels = {"price": tf1.placeholder(tf.float32, [None]), "sold": tf1.placeholder(tf.int64, [None])}
        return est.export.EvalInputReceiver(features, features | labels, labels)

    receivers = {est.ModeKeys.EVAL: eval_receiver_fn}
    path = estimator.experimental_export_all_saved_models(str(tmp_path / "export"), receivers)
    signature = tf.saved_model.load(path.decode(), tags="eval").signatures["eval"]
    assert {"predictions/sold/logistic", "labels/price", "loss"} < set(signature.structured_outputs)


SUM = est.RegressionHead(name="a", loss_reduction="sum")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: est.MultiHead([]), "Must specify heads"),
        (lambda: est.MultiHead([est.RegressionHead()]), "must have a name"),
        (lambda: est.MultiHead([est.RegressionHead(name="a")] * 2), "must differ"),
        (lambda: make_head([1.0]), "same size"),
        (lambda: est.MultiHead([SUM, est.RegressionHead(name="b")]), "loss_reduction must be the same"),
    ],
)
def test_heads_that_can_not_work(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("labels", "logits", "message"),
    [
        (LABELS["price"], LOGITS, "labels must be a dict"),
        ({"price": LABELS["price"]}, LOGITS, r"labels has missing values for head\(s\): \['sold'\]"),
        (None, {"sold": LOGITS[:, 1:]}, r"logits has missing values for head\(s\): \['price'\]"),
        (None, [[1.0, 2.0, 3.0]], "last dimension should be 2"),
    ],
)
def test_labels_and_logits_that_can_not_work(labels, logits, message):
    head, logits = make_head(), tf.nest.map_structure(tf.constant, logits)
    with pytest.raises(ValueError, match=message):
        head.predictions(logits) if labels is None else head.loss(labels, logits)


def test_a_subclass_trains_with_its_own_loss(session):
    class Doubled(est.MultiHead):
        def loss(self, *args, **kwargs):
            return 2.0 * super().loss(*args, **kwargs)

    head, labels = Doubled([est.RegressionHead(name="price")]), {"price": tf.constant([[1.0], [3.0]])}
    spec = head.create_estimator_spec({}, "train", tf.zeros([2, 1]), labels, train_op_fn=tf.identity)
    # (1 + 9) / 2, twice.
    assert session.run(spec.loss) == 10.0
