"""Runs the text of docs/boosted-trees.md."""

import inspect
import pathlib
import re

import pytest

import estimator_core as est

TEXT = (pathlib.Path(__file__).parents[2] / "docs" / "boosted-trees.md").read_text()


@pytest.fixture(scope="module")
def names():
    """The variables of the page's code after it has run."""
    namespace: dict = {}
    for program in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        exec(program, namespace)
    return namespace


def test_the_program_learns(names):
    assert names["metrics"]["accuracy"] > 0.9
    assert set(names["importances"]) == {"size", "kind"}
    assert len(names["explained"]) == 500


def test_early_stopping_keeps_few_trees(names):
    assert 1 <= names["trees"] < 500


@pytest.mark.parametrize(
    "kind", [est.BoostedTreesClassifier, est.BoostedTreesEstimator, est.BoostedTreesRegressor]
)
def test_the_table_has_every_argument(kind):
    _, table = TEXT.split("## How the arguments map to LightGBM")
    in_text = set(re.findall(r"`(\w+)`", TEXT))
    for name in inspect.signature(kind).parameters:
        assert name in in_text, name
        if name not in ("feature_columns", "model_dir", "warm_start_from"):
            assert f"`{name}`" in table, name
