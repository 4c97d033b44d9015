"""The generated taxi trips: reproducible, honestly labelled, as awkward as real data."""

import csv
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from sklearn import ensemble, metrics

from pipelines.examples.taxi import generate, trips


@pytest.fixture(scope="module")
def taxi(tmp_path_factory):
    path = tmp_path_factory.mktemp("taxi") / "sub" / "taxi.csv"
    facts = generate.write_csv(path, rows=15_000, seed=3)
    return path, facts


def test_facts_are_returned_and_the_folder_holds_nothing_but_the_trips(taxi):
    path, facts = taxi
    assert [file.name for file in path.parent.iterdir()] == ["taxi.csv"]
    frame = pd.read_csv(path)
    assert len(frame) == facts["rows"] == 15_000
    assert tuple(frame.columns) == trips.COLUMNS
    assert facts["positive_rate"] == (frame.tips > frame.fare * 0.2).mean()


def test_the_same_seed_gives_the_same_trips_and_fewer_rows_are_the_first_of_more(taxi, tmp_path):
    path, _ = taxi
    generate.write_csv(tmp_path / "again.csv", rows=15_000, seed=3)
    generate.write_csv(tmp_path / "more.csv", rows=trips.BLOCK_ROWS + 7, seed=3)
    generate.write_csv(tmp_path / "other.csv", rows=15_000, seed=4)
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()
    assert (tmp_path / "more.csv").read_text().startswith(path.read_text())
    assert len(pd.read_csv(tmp_path / "more.csv")) == trips.BLOCK_ROWS + 7
    assert (tmp_path / "other.csv").read_bytes() != path.read_bytes()


def test_the_columns_carry_the_probability(taxi):
    path, facts = taxi
    frame = pd.read_csv(path)
    label = frame.tips > frame.fare * 0.2
    features = frame.drop(columns=["tips", "pickup_census_tract"])
    for name in ("payment_type", "company"):
        features[name] = features[name].astype("category")
    model = ensemble.HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=60, learning_rate=0.08, random_state=0
    )
    # Its threads wait for each other in busy loops: slow where other tests run beside.
    with threadpoolctl.threadpool_limits(1):
        model.fit(features[:10_000], label[:10_000])
    auc = metrics.roc_auc_score(label[10_000:], model.predict_proba(features[10_000:])[:, 1])
    assert facts["best_auc"] - 0.03 < auc < facts["best_auc"] + 0.02


def test_the_data_is_as_awkward_as_the_real_one(taxi):
    path, _ = taxi
    frame = pd.read_csv(path)
    assert frame.pickup_census_tract.isna().all()
    for name in ("company", "trip_seconds", "pickup_latitude", "dropoff_community_area"):
        assert 0.01 < frame[name].isna().mean() < 0.5, name
    assert '"Yellow Star Affiliation Services, Inc."' in path.read_text()
    assert '"Northside ""Express"" Taxi, LLC"' in path.read_text()
    companies = frame.company.value_counts(normalize=True)
    assert companies.iloc[0] > 0.3
    assert companies.iloc[-1] < 0.01
    with path.open(newline="") as file:
        whole = next(csv.DictReader(file))
    assert "." not in whole["dropoff_community_area"]
    assert frame.trip_start_day.between(1, 7).all()
    # 1 is Sunday in the city's data; pandas calls Monday 0.
    weekday = pd.to_datetime(frame.trip_start_timestamp, unit="s").dt.dayofweek
    assert (frame.trip_start_day == (weekday + 1) % 7 + 1).all()


def test_roc_auc_equals_scikit_learn_with_ties_and_by_hand():
    rng = np.random.default_rng(0)
    label = rng.random(500) < 0.3
    score = np.round(rng.random(500) + 0.3 * label, 1)
    assert generate.roc_auc(label, score) == pytest.approx(metrics.roc_auc_score(label, score))
    # Pairs (positive, negative): 0.9 > 0.5, 0.9 > 0.1, 0.5 = 0.5 (half), 0.5 > 0.1: 3.5 of 4.
    label = np.array([True, False, True, False])
    assert generate.roc_auc(label, np.array([0.9, 0.5, 0.5, 0.1])) == 3.5 / 4
    assert np.isnan(generate.roc_auc(np.array([True]), np.array([0.5])))


@pytest.mark.parametrize(("rows", "seed"), [(0, 1), (-5, 1), (10, -1)])
def test_out_of_range_arguments_are_refused(tmp_path, rows, seed):
    with pytest.raises(ValueError, match="Received"):
        generate.write_csv(tmp_path / "taxi.csv", rows, seed)
    assert not list(tmp_path.iterdir())


def test_the_command_prints_the_best_auc(tmp_path):
    command = [sys.executable, "-m", "pipelines.examples.taxi.generate"]
    out = tmp_path / "taxi.csv"
    arguments = ["--rows", "200", "--seed", "2", "--out", str(out)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == generate.write_csv(tmp_path / "again.csv", 200, 2)
    assert 0.5 < json.loads(done.stdout)["best_auc"] < 1
    assert out.read_bytes() == (tmp_path / "again.csv").read_bytes()
    refused = subprocess.run([*command, "--rows", "0", "--out", str(out)], capture_output=True)
    assert refused.returncode == 2
    assert b"rows must be at least 1" in refused.stderr
