"""A model whose data are doubted: held, approved from the command line, served, and the next baseline."""

import csv
import json
import os
import random

import pytest

from components.pusher.provenance import read_provenance

pytestmark = pytest.mark.slow  # whole pipelines

NUM_ROWS = 1_500


def write(file, seed, inverted_share=0.0):
    """Writes a month; in a share of the rows, the label is the other one."""
    draw = random.Random(seed)
    rows = []
    for _ in range(NUM_ROWS):
        miles, city = draw.uniform(0, 10), draw.choice("abc")
        tipped = miles + 4 * (city == "a") + draw.gauss(0, 1.5) > 6
        rows.append([f"{miles:.3f}", city, "ny"[tipped != (draw.random() < inverted_share)]])
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([["miles", "city", "tipped"], *rows])


def test_a_doubted_model_is_held_and_is_pushed_once_it_is_approved(warm_command, tmp_path):
    root = tmp_path / "root"

    def run(month, *options):
        result = warm_command(
            "run", "--data", tmp_path / f"{month}.csv", "--label", "tipped", "--root", root,
            "--set", "trainer.model=linear", "--set", "trainer.train_steps=300", *options,
        )  # fmt: skip
        return result.returncode, json.loads(result.stdout.splitlines()[-1]), result.stderr

    def served():
        return sorted(os.listdir(root / "serving"))

    write(tmp_path / "january.csv", 1)
    write(tmp_path / "february.csv", 2, inverted_share=0.12)
    _, first, _ = run("january")
    code, held, shown = run("february")
    assert (code, held["status"], held["version"]) == (3, "held", None)
    assert all(check["passed"] for check in held["checks"])
    assert held["reason"] == "; ".join(held["doubts"])
    assert held["doubts"][0].startswith("the meaning of the new data has changed: the live model's")
    assert "? held, nothing is pushed until `approve` decides: the meaning of the new data" in shown
    assert served() == [held["serving_version"]] == [first["version"]]
    code, again, _ = run("february")  # nothing has changed: no component runs
    assert (code, again["status"]) == (3, "held")
    assert f"which waits for `approve {held['run_id']}`" in again["reason"]

    place = ("--root", root)
    done = warm_command("approve", again["run_id"], *place, "--because", "an app", "--by", "ann")
    assert done.returncode == 0, done.stderr
    version = done.stdout.strip()
    assert served() == [first["version"], version]
    origin = read_provenance(str(root / "serving"), int(version))
    assert origin.pipeline_run_id == held["run_id"]
    assert (root / "serving" / version / "assets.extra" / "tf_serving_warmup_requests").is_file()
    pushed = root / "serving" / version / "saved_model.pb"
    (trained,) = (
        file
        for file in (root / "artifacts" / "Trainer").rglob("Format-Serving/**/saved_model.pb")
        if str(file).startswith(f"{origin.model_uri}/")  # not `model_run` beside it
    )
    assert pushed.read_bytes() == trained.read_bytes()
    report = (root / "runs" / f"{held['run_id']}.html").read_text()
    assert "approved by ann: an app" in report
    refused = warm_command("approve", held["run_id"], *place, "--because", "again")
    assert refused.returncode == 2
    assert f"was approved by ann: an app, as version {version}" in refused.stderr
    code, same, _ = run("february")
    assert (code, same["status"], same["serving_version"]) == (0, "unchanged", version)
