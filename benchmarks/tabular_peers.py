"""scikit-learn's models for `tabular_default.py`, in the form that a data scientist sets up in ten minutes.

Nothing is tuned for a data set; the meaning of the columns is written there (`DataSet`).
"""

import warnings
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

from benchmarks.tabular_sets import Array, DataSet
from benchmarks.tabular_sets_generated import read_amounts

MAX_CATEGORIES = 250  # HistGradientBoosting takes 255
_TEXT_DIMENSIONS = 50

METRIC_NAMES = {"binary": "AUC", "multi-class": "accuracy", "regression": "RMSE"}


def score(data: DataSet, labels: pd.Series, predictions: Any) -> float:
    """Returns the AUC, accuracy or RMSE.

    Args:
        data: Data set, with its type of problem.
        labels: Labels of the rows.
        predictions: Probability of the second class, class names, or numbers.
    """
    if data.problem == "binary":
        return float(
            sklearn.metrics.roc_auc_score(labels == sorted(labels.unique())[1], predictions)
        )
    if data.problem == "multi-class":
        return float(np.mean(labels.astype(str).to_numpy() == np.asarray(predictions).astype(str)))
    return float(np.sqrt(np.mean((labels.to_numpy(float) - np.asarray(predictions, float)) ** 2)))


def boosting(data: DataSet, train: pd.DataFrame, rows: pd.DataFrame) -> Array:
    """Returns the predictions of HistGradientBoosting, trained on `train`, for `rows`."""
    features, of_rows = _prepare(data, train), _prepare(data, rows)
    categories = _categories(data, features)
    numbers = [name for name in features if name not in (*categories, *data.texts)]
    parts: list[tuple[str, Any, Any]] = [
        (
            "categories",
            sklearn.preprocessing.OrdinalEncoder(
                handle_unknown="use_encoded_value",
                unknown_value=np.nan,
                max_categories=MAX_CATEGORIES,
            ),
            categories,
        ),
        ("numbers", "passthrough", numbers),
    ]
    for name in data.texts:
        reduced = sklearn.pipeline.make_pipeline(
            _tfidf(), sklearn.decomposition.TruncatedSVD(_TEXT_DIMENSIONS, random_state=0)
        )
        parts.append((name, reduced, name))
    kind = (
        sklearn.ensemble.HistGradientBoostingRegressor
        if data.problem == "regression"
        else sklearn.ensemble.HistGradientBoostingClassifier
    )
    model = kind(categorical_features=list(range(len(categories))), random_state=0)
    return _fit_and_predict(data, parts, model, features, of_rows, train[data.label])


def linear(data: DataSet, train: pd.DataFrame, rows: pd.DataFrame) -> Array:
    """Returns the predictions of a logistic or ridge regression, trained on `train`, for `rows`."""
    features, of_rows = _prepare(data, train, as_words=True), _prepare(data, rows, as_words=True)
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
    return _fit_and_predict(data, parts, model, features, of_rows, train[data.label])


def _fit_and_predict(
    data: DataSet,
    parts: list[tuple[str, Any, Any]],
    model: Any,
    features: pd.DataFrame,
    of_rows: pd.DataFrame,
    labels: pd.Series,
) -> Array:
    used = [part for part in parts if len(part[2])]
    pipeline = sklearn.pipeline.make_pipeline(
        sklearn.compose.ColumnTransformer(used, sparse_threshold=0.3), model
    )
    with warnings.catch_warnings():
        # Some categories are only in the evaluated rows.
        warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        pipeline.fit(features, labels)
        if data.problem == "binary":
            return pipeline.predict_proba(of_rows)[:, 1]
        return pipeline.predict(of_rows)


def _tfidf() -> Any:
    return sklearn.feature_extraction.text.TfidfVectorizer(min_df=2, sublinear_tf=True)


def _categories(data: DataSet, features: pd.DataFrame) -> list[str]:
    return [
        name
        for name in features
        if name in data.categories or (features[name].dtype == object and name not in data.texts)
    ]


def _prepare(data: DataSet, table: pd.DataFrame, as_words: bool = False) -> pd.DataFrame:
    """Returns the features: amounts and dates as numbers, no missing words.

    Args:
        data: Data set, with the meaning of the columns.
        table: Raw cells.
        as_words: True to make months, weekdays and hours categories, which a linear model needs.
    """
    features = table.drop(columns=[data.label, *data.unused]).copy()
    for name in data.amounts:
        features[name] = read_amounts(features[name])
    for name in (*data.categories, *data.texts):
        features[name] = features[name].astype(object).where(features[name].notna(), "").astype(str)
    for name in data.dates:
        times = pd.to_datetime(features.pop(name))
        features[f"{name} days"] = (times - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        for part in ("month", "weekday", "hour"):
            numbers = getattr(times.dt, part)
            features[f"{name} {part}"] = (
                numbers.astype(str).astype(object) if as_words else numbers.astype(float)
            )
    return features
