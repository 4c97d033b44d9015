"""A root over months: models that are stopped, their baselines, and models that are not pushed twice."""

import csv
import json
import os
import random
import shutil

import pytest

pytestmark = pytest.mark.slow  # whole pipelines

NUM_ROWS = 900


def write(file, seed, shuffled_share=0.0):
    """Writes a month; of a share of the rows, the labels are dealt out anew."""
    draw = random.Random(seed)
    rows = []
    for _ in range(NUM_ROWS):
        miles, city = draw.uniform(0, 10), draw.choice("abc")
        rows.append([f"{miles:.3f}", city, miles + 4 * (city == "a") + draw.gauss(0, 1.5) > 6])
    moved = [row for row in rows if draw.random() < shuffled_share]
    labels = [row[2] for row in moved]
    draw.shuffle(labels)
    for row, label in zip(moved, labels, strict=True):
        row[2] = label
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [["miles", "city", "tipped"], *([*row[:2], "ny"[row[2]]] for row in rows)]
        )
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    write(folder / "january.csv", 1)
    write(folder / "february.csv", 2, shuffled_share=0.6)
    write(folder / "march.csv", 3)
    return folder


@pytest.fixture(scope="module")
def run(run_pipeline, folder):
    """Returns a function that runs a month: the exit code, the last line, and the output."""

    def run_month(month, *settings, label="tipped"):
        settings = ("trainer.model=linear", "trainer.train_steps=300", *settings)
        return run_pipeline(folder / f"{month}.csv", folder / "root", *settings, label=label)

    return run_month


@pytest.fixture(scope="module")
def first(run):
    """The first version of the root."""
    code, line, _ = run("january")
    assert (code, line["status"], line["baseline_version"]) == (0, "pushed", None)
    assert [(c["against"], c["passed"]) for c in line["checks"]] == [("trivial", True)] * 2
    return line["version"]


def served(folder):
    return sorted(os.listdir(folder / "root" / "serving"))


def test_the_same_data_push_nothing_whatever_the_file_is_called(run, first, folder):
    shutil.copy(folder / "january.csv", folder / "a_copy.csv")
    for month in ("january", "a_copy"):
        code, line, shown = run(month)
        assert (code, line["status"], line["version"]) == (0, "unchanged", None)
        assert line["serving_version"] == first
        assert line["reason"].endswith(f"of version {first}, which is already live")
        assert "= unchanged, nothing is pushed" in shown
    assert served(folder) == [first]


def test_another_pipeline_is_refused_before_anything_is_written(run, first, folder):
    before = sorted(path.name for path in (folder / "root" / "runs").iterdir())
    for settings, label, message in (
        ((), "city", "which has data.label = 'tipped'; received 'city'"),
        (("name=other",), "tipped", "which has name = 'january'; received 'other'"),
    ):
        code, line, _ = run("march", *settings, label=label)
        assert (code, line["status"], line["run_id"]) == (2, "failed", None)
        assert message in line["reason"]
    assert sorted(path.name for path in (folder / "root" / "runs").iterdir()) == before


def test_shuffled_labels_in_a_new_file_are_stopped(run, first, folder):
    code, line, shown = run("february")
    assert (code, line["status"], line["version"]) == (3, "not_blessed", None)
    assert (line["baseline_version"], line["serving_version"]) == (first, first)
    assert set(line["baseline_metrics"]) >= {"auc", "binary_crossentropy"}
    stopped = [check for check in line["checks"] if not check["passed"]]
    assert "baseline when pushed" in [check["against"] for check in stopped]
    for check in stopped:
        assert check["message"] in line["reason"]
        assert {"value", "bound", "low", "high"} <= set(check)
        assert f"✗ {check['message']}" in shown
    assert f"(version {first}, the same examples)" in shown
    assert "! doubt: the meaning of the new data has changed: the live model's auc was" in shown
    report = (folder / "root" / "runs" / f"{line['run_id']}.html").read_text()
    assert f"<dt>Compared with</dt><dd>version {first}" in report
    assert f">version {first}</th>" in report  # its metrics, beside those of the new model
    assert served(folder) == [first]


def test_data_that_are_not_what_the_model_needs_stop_before_training(run, first, folder):
    with (folder / "march.csv").open() as source, (folder / "april.csv").open("w", newline="") as to:
        rows = csv.DictReader(source)
        writer = csv.DictWriter(to, ["miles", "city", "tipped"])
        writer.writeheader()
        for row in rows:
            city = "A" if row["city"] == "a" else row["city"]
            writer.writerow({**row, "miles": float(row["miles"]) * 60, "city": city})
    code, line, shown = run("april")
    assert (code, line["status"], line["serving_version"]) == (2, "failed", first)
    assert "ExampleValidator: the data failed validation (4 anomalies" in line["reason"]
    assert "train split, column 'city': Examples contain values missing from the schema: A (~3" in shown
    assert "train split, column 'miles': The values have drifted: the median was " in shown
    record = json.loads((folder / "root" / "runs" / f"{line['run_id']}.json").read_text())
    assert "Transform" not in [part["name"] for part in record["components"]]
    assert served(folder) == [first]


def test_after_a_rollback_the_baseline_is_what_serves_and_nothing_withdrawn_comes_back(
    run, first, folder, warm_command
):
    root = folder / "root"
    code, line, _ = run("march")
    second = line["version"]
    assert (code, line["status"], line["baseline_version"]) == (0, "pushed", first)
    assert len(line["checks"]) == 5
    assert served(folder) == [first, second]

    assert warm_command("rollback", "--root", root).stdout.split() == [first]
    *_, last = json.loads(warm_command("runs", "--root", root, "--json").stdout)
    assert (last["status"], last["version_state"]) == ("withdrawn", "withdrawn")
    assert f"{second} (withdrawn)" in warm_command("runs", "--root", root).stdout

    code, line, _ = run("march")
    assert (code, line["status"], line["version"]) == (0, "unchanged", None)
    assert (line["baseline_version"], line["serving_version"]) == (first, first)
    assert f"version {second}, which was withdrawn (`rollback --to {second}`" in line["reason"]
    code, line, _ = run("january")
    assert (line["status"], line["baseline_version"]) == ("unchanged", first)
    assert served(folder) == [first]

    assert warm_command("rollback", "--root", root, "--to", second).stdout.split() == [second]
    _, line, _ = run("march")
    assert (line["status"], line["baseline_version"]) == ("unchanged", second)
    assert line["reason"].endswith("which is already live")


def test_a_lost_model_that_is_served_is_named_with_the_ways_out(run, first, folder):
    models = folder / "root" / "artifacts" / "Trainer"
    models.rename(folder / "Trainer")
    write(folder / "may.csv", 5)
    try:
        code, line, shown = run("may")
    finally:
        (folder / "Trainer").rename(models)
    version = served(folder)[-1]
    assert (code, line["status"]) == (2, "failed")  # nothing but the user can change it
    for message in (line["reason"], shown):
        assert f"Version {version} in {folder}/root/serving is live" in message
        assert f"its model is not in {folder}/root ({models}/" in message
        assert "Take the version out of that folder; or set evaluator.default_checks = false" in message
