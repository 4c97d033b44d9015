"""LinearSDCA against the optimum that scikit-learn and NumPy find for the same objective.

SDCA minimizes the mean of the losses plus l1 |w| / n + l2 w^2 / (2 n): both regularizations are for
the sum over the n examples, and are for the bias too. scikit-learn's objective is C times the sum of
losses plus w^2 / 2, so C = 1 / l2, and a column of ones stands for the bias.
"""

import numpy as np
import pytest
import sklearn.linear_model
import tensorflow as tf

import estimator_core as est
from estimator_core.experimental import LinearSDCA
from tests.estimator_core.programs import scalars_of

# Old settings of scipy's, in scikit-learn's logistic regression.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")

fc = tf.feature_column
RNG = np.random.RandomState(5)
N = 40
X = RNG.randn(N, 2).astype("f4")
KIND = RNG.randint(0, 3, N)
WEIGHT = (RNG.rand(N) + 0.5).astype("f4")
SCORE = X @ [1.5, -1.0] + 0.7 * (KIND == 1) + 0.3 * RNG.randn(N)
FEATURES = {
    "id": np.array([f"example {i}" for i in range(N)]),
    "x": X,
    "kind": np.array(["a", "b", "c"])[KIND],
    "weight": WEIGHT,
}
LABELS = (SCORE > 0.2).astype("i8")
COLUMNS = [fc.numeric_column("x", 2), fc.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])]
# The values of the columns, and the bias.
DESIGN = np.concatenate([X, np.eye(3)[KIND], np.ones([N, 1])], axis=1)


def input_fn(labels=LABELS, batch_size=10, repeat=None):
    return lambda: (tf.data.Dataset.from_tensor_slices((FEATURES, labels)).repeat(repeat).batch(batch_size))


def variables(estimator, names=("x/weights", "kind/weights", "bias_weights")):
    """Returns the variables, by default in the order of `DESIGN`."""
    values = [estimator.get_variable_value(f"linear/linear_model/{name}") for name in names]
    return np.concatenate([value.ravel() for value in values])


def test_a_classifier_ends_in_the_weights_of_scikit_learn(tmp_path):
    sdca = LinearSDCA("id", symmetric_l2_regularization=2.0)
    model = est.LinearClassifier(COLUMNS, model_dir=str(tmp_path), optimizer=sdca)
    model.train(input_fn(), steps=100)
    theirs = sklearn.linear_model.LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8)
    theirs.fit(DESIGN, LABELS)
    np.testing.assert_allclose(variables(model), theirs.coef_[0], atol=2e-3)


@pytest.mark.more
def test_weights_words_and_shards(tmp_path):
    settings = {"optimizer": LinearSDCA("id", num_table_shards=3), "label_vocabulary": ["no", "yes"]}
    settings["weight_column"] = fc.numeric_column("weight")
    model = est.LinearClassifier(COLUMNS, model_dir=str(tmp_path), **settings)
    model.train(input_fn(np.array(["no", "yes"])[LABELS]), steps=100)
    theirs = sklearn.linear_model.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8)
    theirs.fit(DESIGN, LABELS, sample_weight=WEIGHT)
    np.testing.assert_allclose(variables(model), theirs.coef_[0], atol=5e-3)
    shards = [name for name in model.get_variable_names() if name.endswith("-keys")]
    assert sorted(shards) == [f"ShardedMutableHashTable-{i}-of-3-keys" for i in (1, 2, 3)]


def test_a_regressor_ends_in_the_least_squares_solution(tmp_path):
    sdca = LinearSDCA("id", symmetric_l2_regularization=3.0, adaptive=True)
    model = est.LinearRegressor(COLUMNS, model_dir=str(tmp_path), optimizer=sdca)
    model.train(input_fn(SCORE.astype("f4")), steps=200)
    # The kernel's loss is half the squared error: (D'D + l2 I) w = D'y.
    expected = np.linalg.solve(DESIGN.T @ DESIGN + 3.0 * np.eye(6), DESIGN.T @ SCORE)
    np.testing.assert_allclose(variables(model), expected, atol=2e-3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("head", "labels", "mean"),
    [
        (est.PoissonRegressionHead(), np.floor(np.exp(0.4 * SCORE)), np.exp),
        (est.LogisticRegressionHead(), 1 / (1 + np.exp(-SCORE)), lambda z: 1 / (1 + np.exp(-z))),
    ],
    ids=["poisson", "logistic"],
)
def test_regressions_with_a_loss_of_their_own(tmp_path, head, labels, mean):
    """At the optimum the gradient is zero: D'(mean(Dw) - y) + l2 w = 0."""
    sdca = LinearSDCA("id", symmetric_l2_regularization=4.0)
    model = est.LinearEstimator(head, COLUMNS, model_dir=str(tmp_path), optimizer=sdca)
    model.train(input_fn(labels.astype("f4")), steps=200)
    found = variables(model)
    np.testing.assert_allclose(DESIGN.T @ (mean(DESIGN @ found) - labels) + 4.0 * found, 0.0, atol=0.05)


@pytest.mark.more
def test_l1_regularization_makes_zeros(tmp_path):
    def train(run, l1):
        sdca = LinearSDCA("id", symmetric_l1_regularization=l1)
        model = est.LinearRegressor(COLUMNS, model_dir=str(tmp_path / run), optimizer=sdca)
        return model.train(input_fn(SCORE.astype("f4")), steps=200)

    model = train("l1", 4.0)
    found = variables(model)
    residuals = DESIGN.T @ (SCORE - DESIGN @ found) - found
    zeros = found == 0.0
    assert 0 < zeros.sum() < 6
    # The optimum: |D'r - l2 w| is l1 where a variable is not 0, and smaller where it is.
    np.testing.assert_allclose(residuals[~zeros], 4.0 * np.sign(found[~zeros]), atol=0.05)
    assert np.all(np.abs(residuals[zeros]) < 4.05)
    unshrunk = model.get_variable_value("linear/linear_model/x/weights_unshrunk").ravel()
    expected = np.sign(unshrunk) * np.maximum(0, np.abs(unshrunk) - 4.0)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-6)
    assert not np.any(variables(train("none", 0.0)) == 0.0)


@pytest.mark.more
def test_categories_of_all_kinds(tmp_path):
    """Several words, unknown words, words with weights, buckets: all as the model sees them."""
    words = fc.categorical_column_with_vocabulary_list("words", ["a", "b", "c"])
    columns = [
        fc.weighted_categorical_column(words, "word_weights"),
        fc.bucketized_column(fc.numeric_column("x", 2), [-0.5, 0.5]),
    ]
    number = SCORE.astype("f4")
    lists = [["a", "b", "a"], ["?"], [], ["c", "?", "b"]]

    def input_fn():
        ragged = tf.ragged.constant([lists[i % 4] for i in range(N)])
        weights = tf.ragged.map_flat_values(lambda w: tf.ones_like(w, tf.float32) * 1.5, ragged)
        features = {"id": FEATURES["id"], "x": X, "words": ragged, "word_weights": weights}
        dataset = tf.data.Dataset.from_tensor_slices((features, number)).repeat().batch(10)
        return dataset.map(lambda f, y: ({k: v.to_sparse() if "word" in k else v for k, v in f.items()}, y))

    sdca = LinearSDCA("id", symmetric_l2_regularization=4.0)
    model = est.LinearRegressor(columns, model_dir=str(tmp_path), optimizer=sdca)
    model.train(input_fn, steps=300)
    counts = 1.5 * np.array([[lists[i % 4].count(w) for w in "abc"] for i in range(N)])
    buckets = np.eye(3)[np.digitize(X, [-0.5, 0.5])]
    design = np.concatenate([counts, buckets[:, 0], buckets[:, 1], np.ones([N, 1])], axis=1)
    expected = np.linalg.solve(design.T @ design + 4.0 * np.eye(10), design.T @ number)
    names = ("words_weighted_by_word_weights/weights", "x_bucketized/weights", "bias_weights")
    np.testing.assert_allclose(variables(model, names), expected, atol=5e-3)


@pytest.mark.more
def test_a_second_training_remembers_the_examples(tmp_path):
    def train(run, *steps):
        for count in steps:
            sdca = LinearSDCA("id")
            model = est.LinearClassifier(COLUMNS, model_dir=str(tmp_path / run), optimizer=sdca)
            model.train(lambda: input_fn(batch_size=1)().take(20).repeat(), steps=count)
        return variables(model)

    # Batches of one example, as larger ones are taken in random order. Both trainings start from the
    # first example, and a whole number of rounds apart: in two calls or in one, they are the same.
    np.testing.assert_array_equal(train("in two", 20, 40), train("in one", 60))


def test_summaries_show_the_examples_seen_and_the_duality_gap(tmp_path):
    config = est.RunConfig(model_dir=str(tmp_path), save_summary_steps=1)
    est.LinearClassifier(COLUMNS, config=config, optimizer=LinearSDCA("id")).train(input_fn(), steps=60)
    assert [*scalars_of(tmp_path)["examples_seen"].values()][:5] == [10, 20, 30, 40, 40]
    gaps = [*scalars_of(tmp_path)["approximate_duality_gap"].values()]
    assert gaps[3] > 0.05
    assert -1e-5 < gaps[-1] < 1e-3  # the optimum; both sums are float32


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda sdca: est.LinearClassifier(COLUMNS, n_classes=3, optimizer=sdca), ValueError,
         "cannot be used in a multi-class setting"),
        (lambda sdca: est.LinearRegressor(COLUMNS, label_dimension=2, optimizer=sdca), ValueError,
         "only be used with one-dimensional label"),
        (lambda sdca: est.LinearEstimator(est.MultiLabelHead(2), COLUMNS, optimizer=sdca),
         ValueError, "Unsupported head type"),
        (lambda sdca: est.LinearClassifier(COLUMNS, sparse_combiner="mean", optimizer=sdca),
         ValueError, 'sparse_combiner must be "sum"'),
        (lambda sdca: LinearSDCA("id", symmetric_l2_regularization=0.0), ValueError,
         "symmetric_l2_regularization should be positive"),
        (lambda sdca: LinearSDCA("id", symmetric_l1_regularization=-1.0), ValueError,
         "symmetric_l1_regularization should be non-negative"),
        (lambda sdca: LinearSDCA("id", num_loss_partitions=0), ValueError, "num_loss_partitions"),
        (lambda sdca: LinearSDCA("id", num_table_shards=0), ValueError, "num_table_shards"),
    ],
)  # fmt: skip
def test_what_can_not_work(make, error, message):
    with pytest.raises(error, match=message):
        make(LinearSDCA("id"))


@pytest.mark.parametrize(
    ("id_column", "columns", "error", "message"),
    [
        ("no", COLUMNS, KeyError, "needs the feature 'no', its example_id_column"),
        ("x", COLUMNS, TypeError, "must hold strings"),
        ("id", [fc.indicator_column(COLUMNS[1])], ValueError, "columns of one dimension"),
    ],
)
def test_what_training_refuses(tmp_path, id_column, columns, error, message):
    model = est.LinearClassifier(columns, model_dir=str(tmp_path), optimizer=LinearSDCA(id_column))
    with pytest.raises(error, match=message):
        model.train(input_fn(), steps=1)
