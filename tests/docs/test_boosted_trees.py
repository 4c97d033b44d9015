"""Runs the text of docs/boosted-trees.md."""

import inspect
import re

import pytest

import estimator_core as est
from tests.docs.markdown import blocks, read

TEXT = read("docs/boosted-trees.md")


@pytest.mark.more
def test_the_program_learns_and_early_stopping_keeps_few_trees():
    names = {}
    for program in blocks(TEXT, "python"):
        exec(program, names)
    assert names["metrics"]["accuracy"] > 0.9
    assert set(names["importances"]) == {"size", "kind"}
    assert len(names["explained"]) == 500
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
