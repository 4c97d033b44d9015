import inspect

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.experimental import RNNClassifier, RNNEstimator, SequentialHeadWrapper
from tests.estimator_core.programs import batch_of, example, zeros

fc = tf.feature_column
TOKEN = fc.sequence_categorical_column_with_vocabulary_list("token", ["up", "down"])
TOKENS = [fc.indicator_column(TOKEN)]
# Whether the first of the tokens is "up": the network has to remember it to the end.
SEQUENCES = [
    (["up", "down", "down", "up"], 1),
    (["down", "up", "up", "up"], 0),
    (["up", "up", "down"], 1),
    (["down", "down", "up"], 0),
    (["up"], 1),
    (["down", "down"], 0),
]
LABELS = [label for _, label in SEQUENCES]


def input_fn(repeat=None, labels=LABELS):
    """Whole sequences with one label each, in batches of six and of unequal length."""
    tokens = tf.ragged.constant([tokens for tokens, _ in SEQUENCES])
    return tf.data.Dataset.from_tensor_slices(({"token": tokens}, labels)).repeat(repeat).batch(6)


def step_input_fn(repeat=None):
    """A label for each step: whether more tokens were "up" than "down" so far."""
    ups = [[token == "up" for token in tokens] for tokens, _ in SEQUENCES]
    counts = [[2 * sum(row[: i + 1]) - i - 1 for i in range(len(row))] for row in ups]
    return input_fn(repeat, tf.ragged.constant([[int(count > 0) for count in row] for row in counts]))


def config(directory):
    return est.RunConfig(model_dir=str(directory), tf_random_seed=2)


SIGNATURES = {
    RNNClassifier: (
        "sequence_feature_columns context_feature_columns units cell_type rnn_cell_fn "
        "return_sequences model_dir n_classes weight_column label_vocabulary optimizer "
        "loss_reduction sequence_mask config"
    ),
    RNNEstimator: (
        "head sequence_feature_columns context_feature_columns units cell_type rnn_cell_fn "
        "return_sequences model_dir optimizer config"
    ),
}


@pytest.mark.parametrize("rnn", SIGNATURES)
def test_constructors_have_the_arguments_of_tf_estimator(rnn):
    assert list(inspect.signature(rnn.__init__).parameters)[1:] == SIGNATURES[rnn].split()


@pytest.mark.more
@pytest.mark.parametrize(
    "arguments",
    [
        {"units": [8], "cell_type": "lstm", "optimizer": "Adam"},
        pytest.param(
            {"units": [8, 4], "cell_type": "gru", "optimizer": lambda: tf.keras.optimizers.Adam(0.05)},
            marks=pytest.mark.slow,
        ),
        {
            "rnn_cell_fn": lambda: tf.keras.layers.GRUCell(8, dropout=0.1, seed=3),
            "optimizer": tf.compat.v1.train.AdamOptimizer(0.05),
        },
    ],
    ids=["lstm", "stacked_gru", "keras_cell"],
)
def test_it_learns_to_remember_and_continues_from_its_checkpoint(tmp_path, arguments):
    def make():
        return RNNClassifier(TOKENS, config=config(tmp_path), **arguments)

    make().train(input_fn, steps=40)
    make().train(input_fn, steps=40)
    results = make().evaluate(lambda: input_fn(repeat=1))
    assert results["global_step"] == 80
    assert results["accuracy"] == 1.0
    assert results["average_loss"] < 0.1


@pytest.mark.more
def test_it_learns_a_label_for_each_step(tmp_path):
    settings = {"units": [8], "cell_type": "lstm", "return_sequences": True, "optimizer": "Adam"}
    classifier = RNNClassifier(TOKENS, config=config(tmp_path), **settings)
    classifier.train(step_input_fn, steps=120)
    results = classifier.evaluate(lambda: step_input_fn(repeat=1))
    # By sequence: 1 of 4 steps, 2 of 4, 3 of 3, 0 of 3, 1 of 1, 0 of 2. Padding does not count.
    assert results["label/mean"] == pytest.approx(7 / 17)
    assert results["accuracy"] == 1.0
    rows = list(classifier.predict(lambda: step_input_fn(repeat=1)))
    assert [int(row["sequence_mask"].sum()) for row in rows] == [4, 4, 3, 3, 1, 2]
    assert rows[0]["class_ids"][:, 0].tolist() == [1, 0, 0, 0]


@pytest.mark.more
@pytest.mark.parametrize(
    ("return_sequences", "arguments"),
    [
        (False, {"units": 4}),
        (True, {"units": 4}),
        (False, {"rnn_cell_fn": lambda: tf.keras.layers.GRUCell(4, dropout=0.2)}),
    ],
    ids=["sequence", "steps", "keras_cell"],
)
def test_the_exported_model_answers_as_predict_does(tmp_path, return_sequences, arguments):
    arguments = {"return_sequences": return_sequences, "config": config(tmp_path), **arguments}
    classifier = RNNClassifier(TOKENS, **arguments)
    classifier.train(step_input_fn if return_sequences else input_fn, steps=2)
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(fc.make_parse_example_spec(TOKENS))
    model = tf.saved_model.load(classifier.export_saved_model(str(tmp_path / "export"), receiver_fn))
    predict = model.signatures["predict"]
    served = predict(examples=tf.constant([example(token=tokens) for tokens, _ in SEQUENCES]))
    predicted = [row["logits"] for row in classifier.predict(lambda: input_fn(repeat=1))]
    np.testing.assert_allclose(served["logits"], predicted, rtol=1e-5)
    # One alone, without padding, and one that has no token at all.
    (alone,) = predict(examples=tf.constant([example(token=["up"])]))["logits"]
    nothing = predict(examples=tf.constant([example(token=[])]))["logits"]
    if return_sequences:
        np.testing.assert_allclose(alone[0], predicted[4][0], rtol=1e-5)
        assert nothing.shape == (1, 0, 1)
    else:
        np.testing.assert_allclose(alone, predicted[4], rtol=1e-5)
        bias = classifier.get_variable_value("rnn_model/logits/bias")
        np.testing.assert_allclose(nothing[0], bias, rtol=1e-6)


@pytest.mark.more
def test_the_mask_of_the_features_says_which_steps_count(tmp_path):
    """Only the first step of each example, instead of all."""

    def mask(features, labels):
        first = tf.sequence_mask(tf.ones([6], tf.int32), maxlen=4)
        return {**features, "first": first}, labels.to_tensor()

    settings = {"units": 4, "return_sequences": True, "sequence_mask": "first"}
    classifier = RNNClassifier(TOKENS, config=config(tmp_path), **settings)
    classifier.train(lambda: step_input_fn(repeat=1).map(mask))
    # Three of the six sequences start with "up".
    metrics = classifier.evaluate(lambda: step_input_fn(repeat=1).map(mask))
    assert metrics["label/mean"] == pytest.approx(0.5)


def test_learning_rate_and_names_of_a_named_optimizer(tmp_path):
    estimator = RNNEstimator(est.BinaryClassHead(), TOKENS, units=[2], config=config(tmp_path))
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("training/Adagrad/learning_rate") == pytest.approx(0.05)
    slot = "training/Adagrad/rnn_model/rnn/simple_rnn_cell/recurrent_kernel/accumulator"
    assert estimator.get_variable_value(slot).shape == (2, 2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RNNEstimator(est.RegressionHead(), TOKENS, units=[2], return_sequences=True), ValueError,
         "must be a `SequentialHeadWrapper`"),
        (lambda: RNNClassifier(TOKENS, units=[2], n_classes=1), ValueError, "n_classes"),
        (lambda: RNNClassifier(TOKENS), ValueError, "units must be the size"),
        (lambda: RNNClassifier(TOKENS, units=2, return_sequences=True, weight_column=fc.numeric_column("w")),
         TypeError, "a weight column of sequences is given by its name"),
    ],
)  # fmt: skip
def test_what_can_not_work(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_features_must_be_a_dict(tmp_path):
    estimator = RNNClassifier(TOKENS, units=2, config=config(tmp_path))
    with pytest.raises(ValueError, match="should be a dictionary"):
        estimator.train(lambda: tf.data.Dataset.from_tensors((tf.constant([["up"]]), [1])))


def test_a_sequential_head_over_a_model_of_ones_own(tmp_path):
    head = SequentialHeadWrapper(est.RegressionHead(), "mask")

    def model_fn(features, labels, mode):
        logits = (zeros("scale") * features["x"])[..., tf.newaxis]
        return head.create_estimator_spec(features, mode, logits, labels, optimizer="SGD")

    batch = batch_of({"x": [[1.0, 5.0]], "mask": [[True, False]]}, [[2.0, 0.0]])
    estimator = est.Estimator(model_fn, config=config(tmp_path)).train(batch)
    # One step of 1 and 2: the gradient is -2 * 1 * 2, the learning rate 0.01.
    assert estimator.get_variable_value("scale") == pytest.approx(0.04)
    assert estimator.evaluate(batch)["average_loss"] == pytest.approx(1.96**2)
