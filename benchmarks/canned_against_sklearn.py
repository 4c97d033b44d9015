"""Compares each canned Estimator with scikit-learn's model of the same kind, on the same data.

python benchmarks/canned_against_sklearn.py [NAME ...]

Classifiers learn breast cancer, regressors diabetes, both on three quarters of the examples; the
scores are for the last quarter. KMeans groups all examples of breast cancer. scikit-learn has no
recurrent networks and no sums of models: its peers for them are its network and its vote of two models.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import math
import pathlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.cluster
import sklearn.datasets
import sklearn.dummy
import sklearn.ensemble
import sklearn.exceptions
import sklearn.linear_model
import sklearn.metrics
import sklearn.model_selection
import sklearn.neural_network
import sklearn.preprocessing
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import estimator_core as est
from benchmarks import tables

fc = tf.feature_column
experimental = est.experimental

TOLERANCE = 0.02
BATCH_SIZE = 64
HIDDEN_UNITS = (16,)
EPOCHS = 20  # for all networks except recurrent ones
NUM_CLUSTERS = 5


@dataclasses.dataclass(frozen=True)
class Data:
    """A data set in two parts, its features standardized.

    Args:
        train: Features `[n, dimensions]` and labels `[n]`.
        test: Features and labels of other examples, in the same form.
        score_name: "AUC" or "RMSE".
    """

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    score_name: str


def _data(bunch: Any, score_name: str) -> Data:
    labels = bunch.target.astype(np.float32)
    if score_name == "RMSE":
        labels = (labels - labels.mean()) / labels.std()
    features = sklearn.preprocessing.scale(bunch.data).astype(np.float32)
    split = sklearn.model_selection.train_test_split(
        features, labels, random_state=0, stratify=labels if score_name == "AUC" else None
    )
    train_x, test_x, train_y, test_y = split
    return Data((train_x, train_y), (test_x, test_y), score_name)


CANCER = _data(sklearn.datasets.load_breast_cancer(), "AUC")
DIABETES = _data(sklearn.datasets.load_diabetes(), "RMSE")


def _columns(data: Data) -> list[Any]:
    return [fc.numeric_column("x", data.train[0].shape[1])]


def _dense(points: np.ndarray) -> dict[str, Any]:
    return {"x": points, "id": np.arange(len(points)).astype(str)}


# Breast cancer has ten measures, each with its mean, its error and its worst value: ten steps of three.
STEPS_COLUMN = fc.sequence_numeric_column("steps", shape=3)


def _sequences(points: np.ndarray) -> dict[str, Any]:
    steps = points.reshape(-1, 3, 10).transpose(0, 2, 1)
    return {"steps": tf.sparse.from_dense(steps)}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A canned Estimator and its peer.

    Args:
        data: Training and test data of both models.
        make: `make(config=...)` returns the Estimator.
        steps: Training steps.
        peer: scikit-learn's model.
        features: Function from points to the features of the Estimator.
    """

    data: Data
    make: Callable[..., Any]
    steps: int
    peer: Any
    features: Callable[[np.ndarray], dict[str, Any]] = _dense


@dataclasses.dataclass(frozen=True)
class Result:
    """Scores of a comparison.

    Args:
        loss: Mean training loss of the Estimator at the end.
        score_name: "AUC", "RMSE" or "inertia".
        ours: Score of the Estimator.
        theirs: Score of the peer.
        secs: Training time of the Estimator.
    """

    loss: float
    score_name: str
    ours: float
    theirs: float
    secs: float

    @property
    def difference(self) -> float:
        """The deficit of our score as a share of theirs; below 0 if ours is better."""
        worse = self.theirs - self.ours if self.score_name == "AUC" else self.ours - self.theirs
        return worse / self.theirs


def _logistic_regression() -> Any:
    return sklearn.linear_model.LogisticRegression()


def _network(kind: Any) -> Any:
    return kind(
        HIDDEN_UNITS,
        alpha=0.0,
        batch_size=BATCH_SIZE,
        learning_rate_init=0.01,
        max_iter=EPOCHS,
        random_state=0,
    )


def _steps(data: Data) -> int:
    """Returns the training steps of `EPOCHS`."""
    return EPOCHS * math.ceil(len(data.train[0]) / BATCH_SIZE)


def _adam() -> Any:
    return tf.keras.optimizers.Adam(0.01)


def _combined(data: Data) -> dict[str, Any]:
    columns = _columns(data)
    return {
        "linear_feature_columns": columns,
        "linear_optimizer": _adam,
        "dnn_feature_columns": columns,
        "dnn_hidden_units": HIDDEN_UNITS,
        "dnn_optimizer": _adam,
    }


def _vote_of_classifiers() -> Any:
    network = _network(sklearn.neural_network.MLPClassifier)
    return sklearn.ensemble.VotingClassifier(
        [("linear", _logistic_regression()), ("network", network)], voting="soft"
    )


def _vote_of_regressors() -> Any:
    network = _network(sklearn.neural_network.MLPRegressor)
    return sklearn.ensemble.VotingRegressor(
        [("linear", sklearn.linear_model.Ridge()), ("network", network)]
    )


def _comparisons() -> dict[str, Comparison]:
    cancer, diabetes = _columns(CANCER), _columns(DIABETES)
    classifier = sklearn.neural_network.MLPClassifier
    regressor = sklearn.neural_network.MLPRegressor
    sdca = experimental.LinearSDCA("id")
    return {
        "LinearClassifier": Comparison(
            CANCER, lambda **kw: est.LinearClassifier(cancer, **kw), 500, _logistic_regression()
        ),
        "LinearClassifier, LinearSDCA": Comparison(
            CANCER,
            lambda **kw: est.LinearClassifier(cancer, optimizer=sdca, **kw),
            200,
            _logistic_regression(),
        ),
        "LinearRegressor": Comparison(
            DIABETES,
            lambda **kw: est.LinearRegressor(diabetes, **kw),
            1000,
            sklearn.linear_model.LinearRegression(),
        ),
        "LinearRegressor, LinearSDCA": Comparison(
            DIABETES,
            lambda **kw: est.LinearRegressor(diabetes, optimizer=sdca, **kw),
            300,
            sklearn.linear_model.Ridge(alpha=1.0),
        ),
        "LinearEstimator": Comparison(
            CANCER,
            lambda **kw: est.LinearEstimator(est.BinaryClassHead(), cancer, **kw),
            500,
            _logistic_regression(),
        ),
        "DNNClassifier": Comparison(
            CANCER,
            lambda **kw: est.DNNClassifier(HIDDEN_UNITS, cancer, optimizer=_adam, **kw),
            _steps(CANCER),
            _network(classifier),
        ),
        "DNNRegressor": Comparison(
            DIABETES,
            lambda **kw: est.DNNRegressor(HIDDEN_UNITS, diabetes, optimizer=_adam, **kw),
            _steps(DIABETES),
            _network(regressor),
        ),
        "DNNEstimator": Comparison(
            CANCER,
            lambda **kw: est.DNNEstimator(
                est.BinaryClassHead(), HIDDEN_UNITS, cancer, optimizer=_adam, **kw
            ),
            _steps(CANCER),
            _network(classifier),
        ),
        "DNNLinearCombinedClassifier": Comparison(
            CANCER,
            lambda **kw: est.DNNLinearCombinedClassifier(**_combined(CANCER), **kw),
            _steps(CANCER),
            _vote_of_classifiers(),
        ),
        "DNNLinearCombinedRegressor": Comparison(
            DIABETES,
            lambda **kw: est.DNNLinearCombinedRegressor(**_combined(DIABETES), **kw),
            _steps(DIABETES),
            _vote_of_regressors(),
        ),
        "DNNLinearCombinedEstimator": Comparison(
            CANCER,
            lambda **kw: est.DNNLinearCombinedEstimator(
                est.BinaryClassHead(), **_combined(CANCER), **kw
            ),
            _steps(CANCER),
            _vote_of_classifiers(),
        ),
        "BaselineClassifier": Comparison(
            CANCER,
            lambda **kw: est.BaselineClassifier(**kw),
            200,
            sklearn.dummy.DummyClassifier(strategy="prior"),
        ),
        "BaselineRegressor": Comparison(
            DIABETES,
            lambda **kw: est.BaselineRegressor(**kw),
            200,
            sklearn.dummy.DummyRegressor(strategy="mean"),
        ),
        "BaselineEstimator": Comparison(
            CANCER,
            lambda **kw: est.BaselineEstimator(est.BinaryClassHead(), **kw),
            200,
            sklearn.dummy.DummyClassifier(strategy="prior"),
        ),
        "RNNClassifier": Comparison(
            CANCER,
            lambda **kw: experimental.RNNClassifier(
                [STEPS_COLUMN], units=[8], cell_type="gru", optimizer=_adam, **kw
            ),
            300,
            _network(classifier),
            _sequences,
        ),
        "RNNEstimator": Comparison(
            CANCER,
            lambda **kw: experimental.RNNEstimator(
                est.BinaryClassHead(),
                [STEPS_COLUMN],
                units=[8],
                cell_type="lstm",
                optimizer=_adam,
                **kw,
            ),
            300,
            _network(classifier),
            _sequences,
        ),
    }


COMPARISONS = _comparisons()
CLUSTERINGS = {"KMeans": False, "KMeans, mini-batches": True}
NAMES = (*COMPARISONS, *CLUSTERINGS)


def compare(name: str) -> Result:
    """Trains both models and returns their scores.

    Args:
        name: One of `NAMES`.
    """
    if name in CLUSTERINGS:
        return _compare_clusterings(CLUSTERINGS[name])
    comparison = COMPARISONS[name]
    data, features = comparison.data, comparison.features
    with tempfile.TemporaryDirectory() as model_dir:
        config = est.RunConfig(model_dir=model_dir, tf_random_seed=1)
        estimator = comparison.make(config=config)

        def train_input_fn() -> tf.data.Dataset:
            dataset = tf.data.Dataset.from_tensor_slices((features(data.train[0]), data.train[1]))
            return dataset.shuffle(1000, seed=1).repeat().batch(BATCH_SIZE)

        def input_fn(part: tuple[np.ndarray, np.ndarray]) -> Callable[[], tf.data.Dataset]:
            return lambda: tf.data.Dataset.from_tensor_slices((features(part[0]), part[1])).batch(
                1000
            )

        start = time.monotonic()
        estimator.train(train_input_fn, steps=comparison.steps)
        secs = time.monotonic() - start
        loss = estimator.evaluate(input_fn(data.train))["average_loss"]
        key = "logistic" if data.score_name == "AUC" else "predictions"
        predicted = [row[key][0] for row in estimator.predict(input_fn(data.test))]
    return Result(
        float(loss), data.score_name, _score(data, predicted), _peer_score(comparison), secs
    )


def _score(data: Data, predicted: Any) -> float:
    labels = data.test[1]
    if data.score_name == "AUC":
        # Rounded: a sigmoid of one number differs in its last bit with its place in the vector.
        return float(sklearn.metrics.roc_auc_score(labels, np.round(predicted, 6)))
    return float(np.sqrt(np.mean((labels - predicted) ** 2)))


def _peer_score(comparison: Comparison) -> float:
    data = comparison.data
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", sklearn.exceptions.ConvergenceWarning
        )  # as many epochs as ours
        warnings.filterwarnings(
            "ignore", "scipy.optimize", DeprecationWarning
        )  # old settings there
        peer = comparison.peer.fit(*data.train)
    if data.score_name == "AUC":
        return _score(data, peer.predict_proba(data.test[0])[:, 1])
    return _score(data, peer.predict(data.test[0]))


def _compare_clusterings(use_mini_batch: bool) -> Result:
    points = np.concatenate([CANCER.train[0], CANCER.test[0]])
    first = points[: 20 * NUM_CLUSTERS : 20]
    batch_size = 100 if use_mini_batch else len(points)
    steps = 200 if use_mini_batch else 30

    def input_fn() -> tf.data.Dataset:
        dataset = tf.data.Dataset.from_tensor_slices(points)
        if use_mini_batch:
            dataset = dataset.shuffle(len(points), seed=1)
        return dataset.repeat().batch(batch_size)

    with tempfile.TemporaryDirectory() as model_dir:
        config = est.RunConfig(model_dir=model_dir)
        estimator = experimental.KMeans(
            NUM_CLUSTERS, initial_clusters=first, use_mini_batch=use_mini_batch, config=config
        )
        start = time.monotonic()
        estimator.train(input_fn, steps=steps)
        secs = time.monotonic() - start
        ours = float(estimator.score(lambda: tf.data.Dataset.from_tensors(points)))
    kind = sklearn.cluster.MiniBatchKMeans if use_mini_batch else sklearn.cluster.KMeans
    batches = {"batch_size": batch_size, "random_state": 0} if use_mini_batch else {}
    peer = kind(NUM_CLUSTERS, init=first, n_init=1, max_iter=30, **batches).fit(points)
    distances = peer.transform(points).min(axis=1)
    return Result(ours / len(points), "inertia", ours, float(np.sum(distances**2)), secs)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    logging.disable(logging.WARNING)
    rows = []
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        result = compare(name)
        peer = COMPARISONS[name].peer if name in COMPARISONS else None
        rows.append(
            [
                name,
                type(peer).__name__ if peer else "MiniBatchKMeans" if "mini" in name else "KMeans",
                f"{result.loss:.4f}",
                result.score_name,
                f"{result.ours:.4f}",
                f"{result.theirs:.4f}",
                f"{result.difference:+.2%}",
                f"{result.secs:.1f}",
            ]
        )
    header = ["", "scikit-learn", "training loss", "score", "ours", "theirs", "worse by", "secs"]
    print(tables.format_table(header, rows))


if __name__ == "__main__":
    main()
