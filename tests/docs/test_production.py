"""Runs the commands of docs/production.md, in their order, on one small root."""

import datetime
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from pipelines.cli import options
from pipelines.config.load import load_config
from pipelines.examples.taxi.generate import write_csv
from pipelines.terminal.signals import EXIT_INTERRUPTED
from tests.docs.markdown import blocks, commands, read

TEXT = read("docs/production.md")
(CONFIGURATION,) = blocks(TEXT, "toml")
# A small model: the commands are tested, not the model.
MODEL = '[trainer]\nmodel = "linear"\ntrain_steps = 100\n'
FIRST_DAY = datetime.date(2026, 3, 1)


def section(title):
    """Returns the text below a heading, up to the next one of any level."""
    return re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", TEXT, re.DOTALL | re.MULTILINE)[1]


class Operator:
    """A user who follows the page, in a folder with the configuration."""

    def __init__(self, folder, warm_command):
        self.folder, self._warm_command = folder, warm_command
        (folder / "trips").mkdir()
        (folder / "payments.toml").write_text(CONFIGURATION + MODEL)
        self.days = 0

    def day(self, change=None):
        """Makes the data of the next day."""
        date = FIRST_DAY + datetime.timedelta(self.days)
        self.days += 1
        file = self.folder / "trips" / f"{date}.csv"
        write_csv(file, 1500, self.days)
        if change is not None:
            header, *rows = file.read_text().splitlines()
            file.write_text("\n".join([header, *map(change, rows)]) + "\n")

    def do(self, words, code=0):
        """Runs a command of the page; returns its output."""
        if words[0] == "estimator-pipelines":
            done = self._warm_command(*words[1:], cwd=self.folder)
        else:
            done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr[-3000:]
        return done.stdout, done.stderr

    def run(self, *options, code=0):
        """Runs the pipeline as the page does; returns the object that it prints."""
        (command,) = commands(TEXT.partition("## What a root contains")[0])
        return json.loads(self.do([*command, *options], code)[0].splitlines()[-1])

    @property
    def served(self):
        return sorted(os.listdir(self.folder / "payment_root" / "serving"))


def test_the_configuration_keeps_five_versions_and_the_exit_codes_are_all_of_them(tmp_path):
    (tmp_path / "payments.toml").write_text(CONFIGURATION)
    assert load_config(tmp_path / "payments.toml").pusher.keep == 5
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", section("Schedule the runs"), re.MULTILINE)
    assert {int(code) for code, _ in rows} == {
        options.EXIT_PUSHED,
        options.EXIT_FAILED,
        options.EXIT_BAD_INPUT,
        options.EXIT_NOT_BLESSED,
        EXIT_INTERRUPTED,
    }


def another_unit(row):
    """Changes the fare, the second column, to cents."""
    area, fare, rest = row.split(",", 2)
    return f"{area},{float(fare) * 100 if fare else ''},{rest}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_page_from_its_beginning_to_its_end(tmp_path, warm_command):
    operator = Operator(tmp_path, warm_command)
    root = tmp_path / "payment_root"
    operator.day()
    first = operator.run()["version"]
    operator.day()
    second = operator.run()["version"]
    assert operator.served == [first, second]

    roll_back, show, roll_back_to = commands(section("Roll back"))
    assert operator.do(roll_back)[0].strip() == first
    assert "withdrawn" in operator.do(show)[0]
    assert operator.served == [first]
    assert roll_back_to[-2] == "--to"
    assert operator.do([*roll_back_to[:-1], second])[0].strip() == second
    assert operator.served == [first, second]

    as_json, report = commands(section("Monitor"))
    assert [run["status"] for run in json.loads(operator.do(as_json)[0])] == ["pushed", "pushed"]
    operator.do(report)
    assert (tmp_path / "newest.html").read_text().startswith("<!")

    # A backup, while which no run begins; the losses without one; the restored root.
    (backup,) = commands(section("Back up"))
    operator.do(backup)
    operator.day()
    with (root / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Another run is in progress" in operator.run(code=2)["reason"]
    shutil.rmtree(root / "artifacts")
    assert "its model is not in" in operator.run(code=2)["reason"]  # as on the page
    assert operator.served == [first, second]
    for command in commands(section("Restore")):
        operator.do(command)
    assert {path.name for path in root.iterdir()} >= {"artifacts", "runs", "schema"}
    shutil.rmtree(tmp_path / "trips")
    (tmp_path / "trips").mkdir()
    operator.days = 1
    operator.day()  # the day of the second version again
    assert operator.run()["status"] == "unchanged"

    # Drift: the run stops; the new data are accepted; the next run takes them.
    operator.day(another_unit)
    said = operator.run(code=2)["reason"]
    (message,) = blocks(section("When the data drift"), "")
    assert message.removeprefix("✗ ").strip() in said
    assert "'fare'" in said
    accept, again, once, schema = commands(section("When the data drift"))
    assert operator.do(accept)[0].startswith("accepted: run")
    assert "fare" in operator.do(schema)[0]
    assert again == [*commands(TEXT)[0]]
    assert once[-2:] == ["--set", "example_validator.on_anomalies=warn"]
    resume = commands(section("A killed process"))[0]
    assert resume == [*again, "--resume"]
    assert "--set evaluator.min_skill_kept=0" in section("When the data drift")
    # The served model has never seen a fare in cents, so it has become worse.
    held = operator.run("--set", "evaluator.min_skill_kept=0", code=3)
    assert held["status"] == "held", held
    assert pathlib.Path(held["report"]).exists()
    approve = ["estimator-pipelines", "approve", held["run_id"], "--root", "payment_root"]
    operator.do([*approve, "--because", "fares are in cents now"])
    assert operator.served[:2] == [first, second]
    assert len(operator.served) == 3
