"""Runs the commands of docs/schedules.md; its lists are held against the program."""

import json
import re
import typing
from datetime import datetime, timezone

import pytest
import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.config.load import load_config
from pipelines.config.notify import Event
from pipelines.root import Root
from pipelines.scheduling.notify import missed_event
from pipelines.scheduling.ticks import time_tick
from tests.docs.markdown import blocks, commands, read

TEXT = read("docs/schedules.md")
COMMANDS = [words[1:] for words in commands(TEXT)]
_, NOTIFY = blocks(TEXT, "toml")
TABLE = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)[1][1]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the configuration of the page, and two spans that are too small for a model."""
    for number in (1, 2):
        folder = tmp_path / "trips" / f"span-{number}"
        folder.mkdir(parents=True)
        (folder / "trips.csv").write_text("x,tips\n1,0\n")
    (tmp_path / "trips.toml").write_text(
        'name = "trips"\n[data]\npath = "trips/span-{SPAN}"\nlabel = "tips"\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_has_the_commands_that_it_is_about():
    assert [command[:2] for command in COMMANDS] == [
        ["schedule", name]
        for name in (
            *("create", "create", "list", "run", "backfill"),
            *("check", "metrics", "manifest", "manifest"),
        )
    ]


@pytest.mark.more
def test_the_commands_do_what_the_page_says(here):
    said = {}
    for command in COMMANDS:
        words = [*command]
        if ">" in words:
            words = words[: words.index(">")]
        if words[1] == "run":  # it stays; and there are two spans that it would run
            words = [*words[: words.index("--metrics-port")], "--once"]
        ended = CliRunner().invoke(app, words)
        # The data have one row: runs fail, and that is said.
        expected = 1 if words[1] in ("run", "backfill") else 0
        assert ended.exit_code == expected, (words, ended.output)
        said[command[1], command[-1]] = ended.stdout
    lines = [line.split() for line in TABLE.splitlines()]
    shown = [line.split() for line in said["list", "trips_root"].splitlines()]
    assert shown[0] == lines[0]
    assert shown[1] == lines[1]
    assert shown[2][:7] == lines[2][:7]
    summary = json.loads(said["backfill", "2"].splitlines()[-1])
    assert (summary["failed"], summary["left"]) == (1, ["2"])
    assert said["check", "trips_root"] == "2 schedules, none late\n"
    assert "ExecStart=" in said["manifest", "pipelines.service"]
    assert yaml.safe_load(said["manifest", "cronjob.yaml"])["kind"] == "CronJob"
    families = text_string_to_metric_families((here / "metrics" / "pipelines.prom").read_text())
    of_schedules = {
        sample.name.removeprefix("estimator_pipelines_") for family in families for sample in family.samples
    }
    table = TEXT.partition("| `estimator_pipelines_...` |")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)(?:\{[a-z,]+\})?`", table))
    of_model = {"served_version", "served_model_metric", "served_model_push_time_seconds"}
    of_good_runs = {"newest_good_run_end_time_seconds", "last_good_run_end_time_seconds"}  # all failed
    assert named == of_schedules | of_model | of_good_runs


def test_the_settings_are_valid_and_complete(here):
    file = here / "trips.toml"
    file.write_text(file.read_text() + NOTIFY)
    notify = load_config(file).notify
    assert notify.webhook == "https://example.com/hook"
    assert notify.on == type(notify)().on
    described = TEXT.partition("## Notifications")[2].partition("\n## ")[0]
    for name in (*type(notify).model_fields, *typing.get_args(Event)):
        assert re.search(rf"\b{name}\b", described), name
    now = datetime.now(timezone.utc)
    for name in missed_event(Root(here), [time_tick("trips", now)], ""):
        assert f"`{name}`" in described, name


def test_the_options_are_those_of_the_commands():
    group = typer.main.get_command(app).commands["schedule"].commands
    options = {name for command in group.values() for param in command.params for name in param.opts}
    of_others = {"--resume", "--team", "--compare"}
    for name in re.findall(r"--[a-z][a-z-]*", TEXT):
        assert name in options | of_others, name
