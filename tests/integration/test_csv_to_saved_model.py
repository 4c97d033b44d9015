"""From a messy CSV to a loaded SavedModel, through the command line, as a user does it."""

import csv
import json
import math
import os
import random
import re
import signal
import subprocess
import sys

import httpx
import pytest
import tensorflow as tf

NUM_ROWS = 1_200
CITIES = ("Oslo", "Paris, Texas", 'The "Hague"')


def command(*arguments):
    return [sys.executable, "-m", "pipelines", *map(str, arguments)]


@pytest.fixture(scope="module")
def run(warm_command):
    """Runs a command; only a run that is killed has a process of its own."""
    return warm_command


QUICK = ("--set", "trainer.folds=1", "--set", "trainer.train_steps=600")


def last_line(output):
    return json.loads(output.splitlines()[-1])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A label that follows from two columns, among columns that make trouble."""
    draw = random.Random(3)
    file = tmp_path_factory.mktemp("data") / "trips [1].csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(
            ["", "trip miles", "city/area", "größe", "is_weekend", "version", "driver", "note", "tipped"]
        )
        for number in range(NUM_ROWS):
            miles, city = draw.uniform(0, 10), draw.choice(CITIES)
            good = miles + 4 * (city == CITIES[0]) + draw.gauss(0, 1) > 6
            label = "" if number % 100 == 7 else ("yes" if good else "no")
            writer.writerow(
                [
                    number,
                    "" if number % 11 == 0 else f"{miles:.3f}",
                    "" if number % 13 == 0 else city,
                    draw.choice(("1.5", "NA", "2")),
                    draw.choice(("true", "false")),
                    "v1",
                    f"d{draw.randrange(10**9)}",
                    draw.choice(("plain", "two\nlines", "")),
                    label,
                ]
            )
    return file


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("pipeline") / "root"


@pytest.fixture(scope="module")
def pushed(run, data, root):
    result = run("run", "--data", data, "--label", "tipped", "--root", root, *QUICK)
    assert result.returncode == 0, result.stderr[-2_000:]
    return last_line(result.stdout), result.stderr


def example(**features):
    def feature(value):
        if isinstance(value, str):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))

    named = {name: feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=named)).SerializeToString()


def test_the_run_says_what_it_did(pushed, root):
    line, stderr = pushed
    assert line["status"] == "pushed"
    # The label flips within a standard deviation of noise at a threshold that 10 miles spread out:
    # the best reachable AUC is about 0.97; 0.9 needs both columns.
    assert line["metrics"]["auc"] > 0.9
    assert (root / "serving" / line["version"] / "saved_model.pb").is_file()
    report = (root / "runs" / f"{line['run_id']}.html").read_text().replace("<wbr>", "")
    assert line["report"] == str(root / "runs" / f"{line['run_id']}.html")
    for part in ("auc", "Transform", "city/area:Oslo", "is_weekend:true"):
        assert part in report
    assert "12 rows without a value in 'tipped' are left out" in stderr
    assert "column 'unnamed' is not used" in stderr
    assert "column 'version' is not used: has the same value" in stderr
    assert "column 'driver' is not used" in stderr
    assert re.search(r"✓ Trainer +\d", stderr)
    assert re.search(r"evaluation at step \d+: average_loss [\d.]+, auc [\d.]+\n", stderr)


def test_the_served_model_answers_serialized_raw_examples(pushed, root):
    model = tf.saved_model.load(str(root / "serving" / pushed[0]["version"]))
    examples = tf.constant(
        [
            example(**{"trip miles": 9.5, "city/area": "Oslo", "is_weekend": "true"}),
            example(**{"trip miles": 0.2, "city/area": "Paris, Texas", "größe": "NA"}),
            example(**{"city/area": "a city that was never seen"}),
            example(),
        ]
    )
    answer = model.signatures["serving_default"](inputs=examples)
    assert answer["classes"].numpy()[0].tolist() == [b"no", b"yes"]
    scores = answer["scores"].numpy()
    assert scores.shape == (4, 2)
    assert scores.sum(axis=1) == pytest.approx([1, 1, 1, 1], abs=1e-5)
    assert scores[0, 1] > 0.9
    assert scores[1, 1] < 0.1
    predictions = model.signatures["predict"](examples=examples)
    assert predictions["logistic"].numpy()[:, 0] == pytest.approx(scores[:, 1], abs=1e-6)
    assert predictions["classes"].numpy()[:2, 0].tolist() == [b"yes", b"no"]


@pytest.mark.end_to_end("a file and a server, with an import of TensorFlow each")
def test_the_model_predicts_the_rows_of_a_file_and_of_a_request(run, pushed, root, tmp_path):
    rows = [{"trip miles": 9.5, "city/area": "Oslo"}, {"trip miles": 0.2, "city/area": "Paris, Texas"}]
    with (tmp_path / "new.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    files = ["--data", tmp_path / "new.csv", "-o", tmp_path / "out.csv"]
    result = run("predict", "--root", root, *files, "--explain", 2)
    assert result.returncode == 0, result.stderr[-2_000:]
    assert "contributions: compared with 32 rows of the evaluation split" in result.stderr
    with (tmp_path / "out.csv").open(newline="") as stream:
        predicted = list(csv.DictReader(stream))
    with subprocess.Popen(
        command("serve", "--root", root, "--port", "0", "--name", "tips"), stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            url = next(url[0] for line in server.stderr if (url := re.search(r"http://[^\s/]+", line)))
            answer = httpx.post(f"{url}/v1/models/tips:predict", json={"instances": rows}).json()
        finally:
            server.kill()
    assert [row["class"] for row in predicted] == ["yes", "no"]
    for row in predicted:
        assert {row["column_1"], row["column_2"]} == {"trip miles", "city/area"}
        parts = ("base", "contribution_1", "contribution_2", "contribution_others")
        odds = float(row["probability_yes"]) / float(row["probability_no"])
        assert sum(float(row[part]) for part in parts) == pytest.approx(math.log(odds), abs=1e-4)
    for row, served in zip(predicted, answer["predictions"], strict=True):
        assert float(row["probability_yes"]) == pytest.approx(served["scores"][1], rel=1e-5)


def test_an_unreachable_threshold_pushes_nothing_and_reuses_the_training(run, pushed, data, root):
    before = sorted(os.listdir(root / "serving"))
    threshold = 'evaluator.thresholds=[{metric = "auc", lower = 0.9999}]'
    settings = ("--set", threshold, *QUICK)
    result = run("run", "--data", data, "--label", "tipped", "--root", root, *settings)
    assert result.returncode == 3
    line = last_line(result.stdout)
    assert (line["status"], line["version"]) == ("not_blessed", None)
    assert re.search(r"auc 0\.\d+ is below the lower bound 0\.9999", line["reason"])
    assert sorted(os.listdir(root / "serving")) == before
    for component in ("CsvExampleGen", "Transform", "Trainer"):
        assert f"= {component}  unchanged, reused" in result.stderr
    listed = json.loads(run("runs", "--root", root, "--json").stdout)
    assert [entry["status"] for entry in listed] == ["pushed", "not_blessed"]
    assert [entry["served"] for entry in listed] == [True, False]


@pytest.mark.end_to_end("a run that is killed and resumed")
def test_a_killed_run_is_resumed_from_its_last_checkpoint(run, data, root, pushed):
    arguments = ("run", "--data", data, "--label", "tipped", "--root", root)
    settings = ("--set", "trainer.train_steps=3000", "--set", "trainer.model=wide_deep")
    settings += ("--set", "trainer.early_stopping=false")
    # So many steps learn 800 rows by heart; only the push matters here.
    settings += ("--set", "evaluator.default_checks=false")
    settings += ("--set", 'evaluator.thresholds=[{metric = "auc", lower = 0.6}]')
    with subprocess.Popen(
        command(*arguments, *settings), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for text in process.stderr:
            step = re.search(r"Trainer  step (\d+)/3000", text)
            if step and int(step[1]) > 1_000:  # a checkpoint is saved each 600 steps
                process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    killed = json.loads(run("runs", "--root", root, "--json").stdout)[-1]
    assert killed["status"] == "interrupted"

    result = run("run", "--resume", "--root", root)
    assert result.returncode == 0, result.stderr[-2_000:]
    line = last_line(result.stdout)
    assert (line["run_id"], line["status"]) == (killed["run_id"], "pushed")
    continued = re.search(r"continues from the checkpoint of step (\d+)", result.stderr)
    assert int(continued[1]) >= 600
    assert "evaluation at step 3000" in result.stderr
    assert "= Transform  unchanged, reused" in result.stderr
    listed = json.loads(run("runs", "--root", root, "--json").stdout)
    assert [entry["run_id"] for entry in listed].count(killed["run_id"]) == 1

    assert run("rollback", "--root", root).stdout.split() == [pushed[0]["version"]]
    assert os.listdir(root / "serving") == [pushed[0]["version"]]
