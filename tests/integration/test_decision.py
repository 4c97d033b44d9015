"""A decision threshold through the whole pipeline: predictions, metrics and the baseline agree on it."""

import csv
import json
import random

import numpy as np
import pytest
import sklearn.metrics

pytestmark = pytest.mark.more  # whole pipelines


def write(file, num_rows, seed):
    """Writes rows of which about 7 % are late."""
    draw = random.Random(seed)
    rows = []
    for _ in range(num_rows):
        miles, city = draw.uniform(0, 10), draw.choice("ab")
        rows.append([f"{miles:.3f}", city, "late" if miles + draw.gauss(0, 1.5) > 9.5 else "on time"])
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([["miles", "city", "status"], *rows])
    return rows


def test_predictions_metrics_and_baseline_use_the_threshold_of_their_model(
    run_pipeline, warm_command, tmp_path
):
    data, root = tmp_path / "data", tmp_path / "root"
    data.mkdir()
    write(data / "train.csv", 1_200, 1)
    rows = write(data / "eval.csv", 800, 2)
    labels = np.array([row[2] for row in rows]) == "late"
    cities = np.array([row[1] for row in rows])

    def run(*settings):
        split = ("split.by=files", "split.train=train.csv", "split.eval=eval.csv", "data.positive=late")
        trainer = ("trainer.model=linear", "trainer.train_steps=300")
        code, line, shown = run_pipeline(data, root, *split, *trainer, *settings, label="status")
        assert code == 0, shown[-2_000:]
        record = json.loads((root / "runs" / f"{line['run_id']}.json").read_text())
        (threshold,) = {record["confusion"]["threshold"], json.loads(decision(line).read_text())["threshold"]}
        warm_command("predict", "--root", root, "--data", data / "eval.csv", "-o", tmp_path / "out.csv")
        with (tmp_path / "out.csv").open() as stream:
            predicted = list(csv.DictReader(stream))
        scores = np.array([row["probability_late"] for row in predicted], np.float32)
        taken = np.array([row["class"] for row in predicted]) == "late"
        assert (taken == (scores.astype(np.float64) > threshold)).all()
        return line, record, taken, shown

    def decision(line):
        return root / "serving" / line["version"] / "assets.extra" / "decision.json"

    def metrics(labels, taken):
        return {
            "binary_accuracy": sklearn.metrics.accuracy_score(labels, taken),
            "precision": sklearn.metrics.precision_score(labels, taken),
            "recall": sklearn.metrics.recall_score(labels, taken),
        }

    line, record, taken, shown = run("trainer.decide.recall=0.8")
    first = {name: line["metrics"][name] for name in metrics(labels, taken)}
    assert first == pytest.approx(metrics(labels, taken))
    for city in "ab":
        part = cities == city
        expected = metrics(labels[part], taken[part])
        assert {name: record["slices"][f"city:{city}"][name] for name in expected} == pytest.approx(expected)
    found = (labels & taken).sum()
    assert record["confusion"]["classes"] == ["on time", "late"]
    assert f"{found} of {labels.sum()} 'late' rows are found" in shown
    assert "'late' is predicted at p > 0." in shown
    report = (root / "runs" / f"{line['run_id']}.html").read_text()
    assert f"{found} of {labels.sum()} &#39;late&#39; rows are found" in report

    again, _, others, _ = run("trainer.decide.precision=0.9")
    assert others.sum() < taken.sum()
    assert {name: again["metrics"][name] for name in first} == pytest.approx(metrics(labels, others))
    # The first version is judged by its own threshold, on the same rows as before.
    assert {name: again["baseline_metrics"][name] for name in first} == pytest.approx(first)
    warm_command("rollback", "--root", root)
    warm_command("predict", "--root", root, "--data", data / "eval.csv", "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as stream:
        assert [row["class"] == "late" for row in csv.DictReader(stream)] == taken.tolist()
