"""The other models of `tabular_default.py`, in the form that a data scientist sets up in ten minutes.

Each has its package's defaults. Nothing is tuned for a data set; the meaning of the columns is written there
(`DataSet`).
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import sklearn.compose
import sklearn.decomposition
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.impute
import sklearn.linear_model
import sklearn.metrics
import sklearn.pipeline
import sklearn.preprocessing

from benchmarks.tabular_sets import Array, DataSet, MissingPackageError
from benchmarks.tabular_sets_generated import read_amounts

MAX_CATEGORIES = 250  # HistGradientBoosting takes 255
_TEXT_DIMENSIONS = 50
_LEAST_PROBABILITY = 1e-15

SCORE_NAMES = {"binary": "AUC", "multi-class": "accuracy", "regression": "RMSE"}
LOSS_NAMES = {"binary": "log loss", "multi-class": "log loss", "regression": "RMSE"}


def scores(data: DataSet, labels: pd.Series, predicted: Array, classes: list[str]) -> list[float]:
    """Returns the score (AUC, accuracy or RMSE) and the loss (log loss or RMSE) of predictions."""
    if data.problem == "regression":
        rmse = float(np.sqrt(np.mean((labels.to_numpy(float) - predicted) ** 2)))
        return [rmse, rmse]
    numbers = {name: number for number, name in enumerate(classes)}
    places = labels.map(numbers)
    # A class that no training row has is one that the model holds for impossible.
    has_place = places.notna().to_numpy()
    of_label = np.zeros(len(labels))
    of_label[has_place] = predicted[has_place, places[has_place].astype(int)]
    loss = float(-np.log(np.clip(of_label, _LEAST_PROBABILITY, 1)).mean())
    if data.problem == "binary":
        return [float(sklearn.metrics.roc_auc_score(places == 1, predicted[:, 1])), loss]
    return [float(np.mean(places.to_numpy() == predicted.argmax(axis=1))), loss]


def compare(
    data: DataSet, name: str, trained: pd.DataFrame, evaluated: pd.DataFrame, seed: int, our_secs: float
) -> tuple[list[float], float]:
    """Returns the scores of one of `PEERS` or `SEARCHES`, and the seconds of training and prediction."""
    start = time.monotonic()
    with warnings.catch_warnings():
        # Some categories are only in the evaluated rows.
        warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        if name in SEARCHES:
            predicted, classes = SEARCHES[name](data, trained, evaluated, seed, our_secs)
        else:
            predicted, classes = PEERS[name](data, trained, evaluated, seed)
    secs = time.monotonic() - start
    return scores(data, evaluated[data.label], predicted, classes), secs


def _lightgbm(data: DataSet, train: pd.DataFrame, rows: pd.DataFrame, seed: int) -> tuple[Array, list[str]]:
    import lightgbm

    kind = lightgbm.LGBMRegressor if data.problem == "regression" else lightgbm.LGBMClassifier
    parts, num_categories = _tree_parts(data, train)
    model = kind(random_state=seed, verbosity=-1)
    options = {"categorical_feature": list(range(num_categories))} if num_categories else {}
    return _fit_and_predict(data, parts, model, train, rows, options)


def _hist_gradient_boosting(
    data: DataSet, train: pd.DataFrame, rows: pd.DataFrame, seed: int
) -> tuple[Array, list[str]]:
    kind = (
        sklearn.ensemble.HistGradientBoostingRegressor
        if data.problem == "regression"
        else sklearn.ensemble.HistGradientBoostingClassifier
    )
    parts, num_categories = _tree_parts(data, train)
    model = kind(categorical_features=list(range(num_categories)), random_state=seed)
    return _fit_and_predict(data, parts, model, train, rows)


def _catboost(data: DataSet, train: pd.DataFrame, rows: pd.DataFrame, seed: int) -> tuple[Array, list[str]]:
    try:
        import catboost
    except ImportError as error:
        raise MissingPackageError(
            "catboost is not installed; benchmarks/tabular_sets.py says how to"
        ) from error
    is_regression = data.problem == "regression"
    kind = catboost.CatBoostRegressor if is_regression else catboost.CatBoostClassifier
    features, of_rows = _prepare(data, train), _prepare(data, rows)
    categories = _categories(data, features)
    for table in (features, of_rows):
        table[categories] = table[categories].astype(object).where(table[categories].notna(), "")
        table[categories] = table[categories].astype(str)
    _reduce_texts(data, features, of_rows)
    model = kind(random_seed=seed, verbose=False, allow_writing_files=False)
    model.fit(features, train[data.label], cat_features=categories)
    if is_regression:
        return model.predict(of_rows), []
    return model.predict_proba(of_rows), [str(name) for name in model.classes_]


def _reduce_texts(data: DataSet, features: pd.DataFrame, of_rows: pd.DataFrame) -> None:
    for name in data.texts:
        reduced = _reduced_text().fit(features[name])
        for table in (features, of_rows):
            numbers = reduced.transform(table.pop(name))
            table[[f"{name} {at}" for at in range(numbers.shape[1])]] = numbers


def _linear(data: DataSet, train: pd.DataFrame, rows: pd.DataFrame, seed: int) -> tuple[Array, list[str]]:
    del seed  # nothing is drawn
    features = _prepare(data, train, as_words=True)
    categories = _categories(data, features)
    numbers = [name for name in features if name not in (*categories, *data.texts)]
    parts: list[tuple[str, Any, Any]] = [
        ("categories", sklearn.preprocessing.OneHotEncoder(handle_unknown="ignore"), categories),
        (
            "numbers",
            sklearn.pipeline.make_pipeline(
                sklearn.impute.SimpleImputer(strategy="median", add_indicator=True),
                sklearn.preprocessing.StandardScaler(),
            ),
            numbers,
        ),
    ]
    parts += [(name, _tfidf(), name) for name in data.texts]
    model = (
        sklearn.linear_model.Ridge()
        if data.problem == "regression"
        else sklearn.linear_model.LogisticRegression(max_iter=2_000)
    )
    return _fit_and_predict(data, parts, model, train, rows, as_words=True)


def _flaml(
    data: DataSet, train: pd.DataFrame, rows: pd.DataFrame, seed: int, secs: float
) -> tuple[Array, list[str]]:
    try:
        import flaml
    except ImportError as error:
        raise MissingPackageError("flaml is not installed; benchmarks/tabular_sets.py says how to") from error
    features, of_rows = _prepare(data, train), _prepare(data, rows)
    _reduce_texts(data, features, of_rows)
    model = flaml.AutoML()
    is_regression = data.problem == "regression"
    model.fit(
        X_train=features,
        y_train=train[data.label],
        task="regression" if is_regression else "classification",
        metric="rmse" if is_regression else "log_loss",
        time_budget=secs,
        seed=seed,
        n_jobs=1,
        verbose=0,
    )
    if is_regression:
        return model.predict(of_rows), []
    return model.predict_proba(of_rows), [str(name) for name in model.classes_]


PEERS: dict[str, Callable[..., tuple[Array, list[str]]]] = {
    "LightGBM": _lightgbm,
    "CatBoost": _catboost,
    "HGB": _hist_gradient_boosting,
    "linear": _linear,
}
"""Functions of (data set, rows to learn from, rows to predict, seed) to (predictions, class names)."""

SEARCHES: dict[str, Callable[..., tuple[Array, list[str]]]] = {"FLAML": _flaml}
"""Like `PEERS`, with the seconds that our run took, which they may use for their search."""


def _tree_parts(data: DataSet, train: pd.DataFrame) -> tuple[list[tuple[str, Any, Any]], int]:
    """Returns the parts of a ColumnTransformer, categories as numbers first, and how many these are."""
    features = _prepare(data, train)
    categories = _categories(data, features)
    numbers = [name for name in features if name not in (*categories, *data.texts)]
    encoder = sklearn.preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=MAX_CATEGORIES
    )
    parts: list[tuple[str, Any, Any]] = [
        ("categories", encoder, categories),
        ("numbers", "passthrough", numbers),
    ]
    return [*parts, *((name, _reduced_text(), name) for name in data.texts)], len(categories)


def _fit_and_predict(
    data: DataSet,
    parts: list[tuple[str, Any, Any]],
    model: Any,
    train: pd.DataFrame,
    rows: pd.DataFrame,
    options: dict[str, Any] | None = None,
    as_words: bool = False,
) -> tuple[Array, list[str]]:
    used = [part for part in parts if len(part[2])]
    columns = sklearn.compose.ColumnTransformer(used, sparse_threshold=0.3)
    matrix = columns.fit_transform(_prepare(data, train, as_words))
    model.fit(matrix, train[data.label], **(options or {}))
    of_rows = columns.transform(_prepare(data, rows, as_words))
    if data.problem == "regression":
        return model.predict(of_rows), []
    return model.predict_proba(of_rows), [str(name) for name in model.classes_]


def _tfidf() -> Any:
    return sklearn.feature_extraction.text.TfidfVectorizer(min_df=2, sublinear_tf=True)


class _Reduction(sklearn.decomposition.TruncatedSVD):
    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        self.n_components = min(_TEXT_DIMENSIONS, X.shape[1])
        return super().fit_transform(X, y)


def _reduced_text() -> Any:
    return sklearn.pipeline.make_pipeline(_tfidf(), _Reduction(random_state=0))


def _categories(data: DataSet, features: pd.DataFrame) -> list[str]:
    return [
        name
        for name in features
        if name in data.categories or (features[name].dtype == object and name not in data.texts)
    ]


def _prepare(data: DataSet, table: pd.DataFrame, as_words: bool = False) -> pd.DataFrame:
    """Returns the features: amounts and dates as numbers, no missing words."""
    features = table.drop(columns=[data.label, *data.unused]).copy()
    for name in data.amounts:
        features[name] = read_amounts(features[name])
    for name in (*data.categories, *data.texts):
        features[name] = features[name].astype(object).where(features[name].notna(), "").astype(str)
    for name in data.dates:
        times = pd.to_datetime(features.pop(name))
        if times.dt.tz is not None:
            times = times.dt.tz_localize(None)
        features[f"{name} days"] = (times - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        for part in ("month", "weekday", "hour"):
            numbers = getattr(times.dt, part)
            features[f"{name} {part}"] = (
                numbers.astype(str).astype(object) if as_words else numbers.astype(float)
            )
    return features
