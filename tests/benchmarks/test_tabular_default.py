"""Tests of the comparison of many tables: scores, ranks and what is kept."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from benchmarks import tabular_default, tabular_peers
from benchmarks.tabular_sets import DataSet, shipped


def data_set(problem):
    return DataSet("trips", "a test", "paid", problem, pd.DataFrame)


def test_reports_at_least_30_tables_with_names_of_their_own():
    names = [data.name for data in shipped()]
    assert len(names) >= 30
    assert len(set(names)) == len(names)


def test_equal_values_share_their_mean_rank():
    assert tabular_default.rank([0.3, 0.1, 0.3, 0.2]) == [3.5, 1, 3.5, 2]


def test_scores_of_classes():
    labels = pd.Series(["no", "yes", "yes", "no"])
    probabilities = np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9], [0.4, 0.6]])
    auc, loss = tabular_peers.scores(data_set("binary"), labels, probabilities, ["no", "yes"])
    assert auc == 0.75  # 0.5 is below 0.6, the other three of four pairs are in order
    assert loss == pytest.approx(-math.log(0.8 * 0.5 * 0.9 * 0.4) / 4)
    accuracy, _ = tabular_peers.scores(data_set("multi-class"), labels, probabilities, ["no", "yes"])
    assert accuracy == 0.5  # of two equal probabilities the first counts


def test_a_class_that_was_not_learned_is_impossible_not_left_out():
    labels = pd.Series(["bus", "tram"])
    probabilities = np.array([[1.0, 0.0], [1.0, 0.0]])
    accuracy, loss = tabular_peers.scores(data_set("multi-class"), labels, probabilities, ["bus", "car"])
    assert accuracy == 0.5
    assert loss == pytest.approx(-math.log(1e-15) / 2)


def test_scores_of_numbers():
    score, loss = tabular_peers.scores(
        data_set("regression"), pd.Series([1.0, 4.0]), np.array([1.0, 2.0]), []
    )
    assert score == loss == pytest.approx(math.sqrt(2))


def test_ranks_by_auc_from_above_and_by_loss_from_below(tmp_path):
    figures = {
        "rows": 100,
        "columns": 3,
        "model": "linear",
        "status": "pushed",
        "components": {},
        "secs": {"ours": 20.0, "HGB": 1.0},
    }
    (tmp_path / "figures").mkdir()
    for seed, ours, theirs in ((1, [0.8, 0.4], [0.7, 0.3]), (2, [0.6, 0.6], [0.5, 0.5])):
        figures_of_seed = {**figures, "scores": {"ours": ours, "HGB": theirs}}
        (tmp_path / "figures" / f"trips-{seed}.json").write_text(json.dumps(figures_of_seed))
    done = [tabular_default.Comparison(data_set("binary"), seed, tmp_path) for seed in (1, 2)]
    for result in done:
        result.complete(["HGB"], tmp_path, ())  # all is there: nothing runs
    text = tabular_default.report(done, ["HGB"])
    assert "Mean rank by score over 1 tables: ours 1.00, HGB 2.00." in text
    assert "Mean rank by loss over 1 tables: ours 2.00, HGB 1.00." in text
    assert "+16.67%" in text  # 0.7 / 0.6 - 1
    assert "-25.00%" in text  # 1 - 0.5 / 0.4
