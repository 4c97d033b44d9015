"""Canned Estimators beyond the oracle: constructors, optimizers, exports that answer, continued runs."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import batch_of, example

fc = tf.feature_column
SIZE = fc.numeric_column("size")
KIND = fc.categorical_column_with_vocabulary_list("kind", ["x", "y"])
RNG = np.random.RandomState(3)
FEATURES = {"size": RNG.randn(64).astype(np.float32), "kind": np.array(["x", "y"])[RNG.randint(0, 2, 64)]}
LABELS = ((FEATURES["size"] > 0) ^ (FEATURES["kind"] == "x")).astype(np.int64)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat().batch(32)


# The constructors of tf.estimator 2.15, arguments in order.
_REST = "config warm_start_from loss_reduction"
_DNN = "hidden_units feature_columns model_dir"
_BOTH = "linear_feature_columns linear_optimizer dnn_feature_columns dnn_optimizer dnn_hidden_units "
_BOTH += "dnn_activation_fn dnn_dropout"
_CLASSES, _NUMBERS = "n_classes weight_column label_vocabulary", "label_dimension weight_column"
_NETWORK = "optimizer activation_fn dropout"
SIGNATURES = {
    "LinearClassifier": f"feature_columns model_dir {_CLASSES} optimizer {_REST} sparse_combiner",
    "LinearRegressor": f"feature_columns model_dir {_NUMBERS} optimizer {_REST} sparse_combiner",
    "LinearEstimator": "head feature_columns model_dir optimizer config sparse_combiner warm_start_from",
    "DNNClassifier": f"{_DNN} {_CLASSES} {_NETWORK} {_REST} batch_norm",
    "DNNRegressor": f"{_DNN} {_NUMBERS} {_NETWORK} {_REST} batch_norm",
    "DNNEstimator": f"head {_DNN} {_NETWORK} config warm_start_from batch_norm",
    "DNNLinearCombinedClassifier": f"model_dir {_BOTH} {_CLASSES} {_REST} batch_norm linear_sparse_combiner",
    "DNNLinearCombinedRegressor": f"model_dir {_BOTH} {_NUMBERS} {_REST} batch_norm linear_sparse_combiner",
    # warm_start_from, the last one, is ours.
    "DNNLinearCombinedEstimator": f"head model_dir {_BOTH} config batch_norm linear_sparse_combiner "
    "warm_start_from",
}


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_constructors_have_the_arguments_of_tf_estimator(name):
    parameters = inspect.signature(getattr(est, name).__init__).parameters
    assert list(parameters)[1:] == SIGNATURES[name].split()


@pytest.mark.more
@pytest.mark.parametrize(
    "optimizer",
    [
        tf.keras.optimizers.Adam(0.05),
        tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.5, 100, 0.9), momentum=0.9),
        lambda: tf.keras.optimizers.Adagrad(0.3),
        tf.compat.v1.train.AdamOptimizer(0.05),
        lambda: tf.compat.v1.train.AdagradOptimizer(0.3),
    ],
    ids=["keras", "keras_schedule", "keras_fn", "v1", "v1_fn"],
)
def test_any_optimizer_learns_and_continues_from_its_checkpoint(tmp_path, optimizer):
    columns = [SIZE, fc.embedding_column(KIND, 4)]

    def make():
        config = est.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
        return est.DNNClassifier([8], columns, optimizer=optimizer, config=config)

    make().train(input_fn, steps=60)
    make().train(input_fn, steps=60)
    results = make().evaluate(input_fn, steps=2)
    assert results["global_step"] == 120
    assert results["accuracy"] > 0.9  # the labels are an exclusive or: no linear model gets there


@pytest.mark.more
def test_the_exported_model_answers_as_predict_does(tmp_path):
    dnn = {"dnn_feature_columns": [SIZE, fc.indicator_column(KIND)], "dnn_hidden_units": [4]}
    settings = {"linear_feature_columns": [KIND], **dnn, "label_vocabulary": ["no", "yes"]}
    estimator = est.DNNLinearCombinedClassifier(model_dir=str(tmp_path), **settings)
    in_words = lambda features, label: (features, tf.where(tf.equal(label, 1), "yes", "no"))  # noqa: E731
    estimator.train(lambda: input_fn().map(in_words), steps=5)
    spec = {"size": tf.io.FixedLenFeature([1], tf.float32), "kind": tf.io.VarLenFeature(tf.string)}
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(spec)
    model = tf.saved_model.load(estimator.export_saved_model(str(tmp_path / "export"), receiver_fn))
    rows = [example(size=0.5, kind="x"), example(size=-1.0, kind="unknown"), example(size=-1.0)]
    served = model.signatures["serving_default"](inputs=tf.constant(rows))
    assert served["classes"].numpy().tolist() == [[b"no", b"yes"]] * 3
    # A word that is not in the vocabulary counts as none.
    np.testing.assert_array_equal(served["scores"][1], served["scores"][2])
    (prediction,) = estimator.predict(batch_of({"size": [[0.5]], "kind": [["x"]]}))
    np.testing.assert_allclose(served["scores"][0], prediction["probabilities"], rtol=1e-6)
    regression = model.signatures["regression"](inputs=tf.constant(rows[:1]))
    np.testing.assert_allclose(regression["outputs"][0], prediction["logistic"], rtol=1e-6)


@pytest.mark.more
def test_a_vocabulary_file_is_exported_with_the_model(tmp_path):
    path = tmp_path / "kinds.txt"
    path.write_text("x\ny\n")
    kind = fc.categorical_column_with_vocabulary_file("kind", str(path))
    estimator = est.LinearClassifier([kind], model_dir=str(tmp_path / "model")).train(input_fn, steps=1)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"kind": tf.TensorSpec([None], tf.string)})
    export_dir = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn)
    path.unlink()
    answer = tf.saved_model.load(export_dir).signatures["predict"](kind=tf.constant(["x", "?"]))
    assert answer["logits"].shape == (2, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: est.DNNLinearCombinedClassifier(), "Either linear_feature_columns or dnn_"),
        (lambda: est.DNNLinearCombinedClassifier(dnn_feature_columns=[SIZE]), "dnn_hidden_units must be"),
        (lambda: est.LinearClassifier([]), "must not be empty"),
        (lambda: est.LinearClassifier([SIZE], n_classes=1), "n_classes must be at least 2"),
        (lambda: est.DNNClassifier([0], [SIZE]), "positive integers"),
    ],
)
def test_what_can_not_work(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.more
def test_learning_rates_of_named_optimizers(tmp_path):
    def learning_rates(estimator, input_fn=input_fn):
        names = estimator.train(input_fn, steps=1).get_variable_names()
        rates = [name for name in names if name.endswith("/learning_rate")]
        return {name: float(estimator.get_variable_value(name)) for name in rates}

    # 0.2 for any number of columns, and for a combined model min(0.005, 1 / sqrt(1)); Keras's defaults
    # for networks. tf.estimator 2.15 writes the same.
    linear = est.LinearClassifier([SIZE], optimizer="Adam", model_dir=str(tmp_path / "linear"))
    assert learning_rates(linear) == {"training/Adam/learning_rate": pytest.approx(0.2)}
    keys = [f"x{number}" for number in range(36)]
    columns = [fc.numeric_column(key) for key in keys]
    wide = est.LinearClassifier(columns, optimizer="Adam", model_dir=str(tmp_path / "wide"))
    batch = lambda features, label: (dict.fromkeys(keys, features["size"]), label)  # noqa: E731
    assert list(learning_rates(wide, lambda: input_fn().map(batch)).values()) == [pytest.approx(0.2)]
    dnn = {"dnn_feature_columns": [SIZE], "dnn_hidden_units": [2], "dnn_optimizer": "SGD"}
    combined = est.DNNLinearCombinedClassifier(str(tmp_path / "combined"), [SIZE], **dnn)
    rates = {"training/SGD/learning_rate": 0.01, "training/Ftrl/learning_rate": 0.005}
    assert learning_rates(combined) == pytest.approx(rates)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("api", "baseline"), [(est, 0.0), (est.v1, 1.0)])
def test_classifiers_evaluated_on_an_empty_input_return_what_2_15_does(tmp_path, api, baseline):
    classifier = api.LinearClassifier([SIZE], model_dir=tmp_path).train(input_fn, steps=2)
    metrics = classifier.evaluate(lambda: input_fn().take(0))
    assert (metrics.pop("global_step"), metrics.pop("accuracy_baseline")) == (2, baseline)
    names = "accuracy auc auc_precision_recall average_loss label/mean loss precision prediction/mean recall"
    assert sorted(metrics) == names.split()
    assert set(metrics.values()) == {0.0}
