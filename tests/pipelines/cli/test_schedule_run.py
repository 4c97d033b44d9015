"""The scheduler as a process, with the real clock. Its runs end at once: the data are not there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pipelines.root import Root
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import time_of_key
from tests.pipelines.cli.invocation import invoke

PROJECT = Path(__file__).parents[3]


def schedule(*words, code=0):
    return invoke("schedule", *words, code=code)


class SchedulerProcess:
    """`schedule run` with options."""

    def __init__(self, folder, *options):
        self.log = folder / f"scheduler-{time.monotonic_ns()}.log"
        words = [sys.executable, "-m", "pipelines", "schedule", "run", "--root", "root", *options]
        environment = {**os.environ, "PYTHONPATH": ":".join([str(PROJECT), *sys.path])}
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(words, cwd=folder, stderr=stream, env=environment)

    def wait_for(self, condition, secs=90):
        """Waits until a condition holds."""
        deadline = time.monotonic() + secs
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def end(self, number=signal.SIGTERM):
        """Ends it by a signal, and returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(90)


@pytest.fixture
def here(data, tmp_path, monkeypatch):
    """A folder with a schedule of every third second, whose data are not there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trips.toml").write_text(
        'name = "trips"\n[data]\npath = "data.csv"\nlabel = "y"\n[notify]\n'
        f'command = "tee -a {tmp_path}/told.jsonl"\n'
        '[kubeflow]\nimage = "own:1"\n'
    )
    schedule(
        *("create", "--config", "trips.toml", "--root", "root", "--every", "3s"),
        *("--missed", "catch-up", "--grace", "5m"),
    )
    data.unlink()
    return tmp_path


@pytest.fixture
def records(here):
    """Returns a function that returns the records of the runs that have failed."""
    root = Root(here / "root")
    return lambda: [record for record in root.records.read_all() if record.status == "failed"]


@pytest.mark.slow
def test_three_ticks_by_a_real_clock(here, records):
    scheduler = SchedulerProcess(here, "--metrics-port", "0", "--metrics-file", "m/p.prom")
    try:
        scheduler.wait_for(lambda: len(records()) >= 2)
        second = SchedulerProcess(here)
        assert second.process.wait(60) == 2
        assert "Another scheduler is working in" in second.log.read_text()
        (address,) = re.findall(r"metrics: (http://127\.0\.0\.1:\d+/metrics)", scheduler.log.read_text())
        with urllib.request.urlopen(address, timeout=30) as answer:
            text = answer.read().decode()
        names = {family.name for family in text_string_to_metric_families(text)}
        assert "estimator_pipelines_scheduled_runs" in names
        scheduler.wait_for(lambda: len(records()) >= 3)
    finally:
        code = scheduler.end()
    assert code == 0
    ticks = [record.scheduled_by.partition("/")[2] for record in records()]
    dues = [time_of_key(tick) for tick in ticks]
    assert {(after - before).seconds for before, after in pairwise(dues)} == {3}
    for record, due in zip(records(), dues, strict=True):
        assert "data.csv" in record.reason
        assert (record.attempt, record.is_bad_input) == (0, True)
        assert datetime.fromisoformat(record.started) >= due
    told = [json.loads(line) for line in (here / "told.jsonl").read_text().splitlines()]
    assert {content["tick"] for content in told} >= set(ticks)
    assert len(told) == len({content["id"] for content in told})
    assert "estimator_pipelines_scheduled_runs_total" in (here / "m" / "p.prom").read_text()


@pytest.mark.more
def test_a_run_is_stopped_with_the_scheduler(here, records):
    # A run that is still reading its configuration, from a pipe to which nothing is written.
    pipe = here / "trips.toml"
    pipe.unlink()
    os.mkfifo(pipe)
    scheduler = SchedulerProcess(here)
    writer = None

    def is_read():
        nonlocal writer
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            return False
        return True

    try:
        scheduler.wait_for(lambda: "run begun, process" in scheduler.log.read_text())
        scheduler.wait_for(is_read)
    finally:
        begun = time.monotonic()
        code = scheduler.end()
    assert code == 0
    assert time.monotonic() - begun < 60
    os.close(writer)
    assert records() == []  # the next scheduler runs the tick
    (process,) = re.findall(r"run begun, process (\d+)", scheduler.log.read_text())
    assert not os.path.exists(f"/proc/{process}")


@pytest.mark.more
def test_once_makes_the_runs_that_are_due_and_ends(here, records):
    store = ScheduleStore(Root(here / "root"))
    earlier = store.read("trips").created - timedelta(seconds=10)
    store.change("trips", created=earlier, since=earlier)
    scheduler = SchedulerProcess(here, "--once")
    while scheduler.process.poll() is None and not records():
        time.sleep(0.1)
    schedule("disable", "trips", "--root", "root")  # where a run takes 3 s, the next is always due
    assert scheduler.process.wait(120) == 1  # a run has failed
    assert len(records()) >= 1
    assert SchedulerProcess(here, "--once").process.wait(60) == 0


@pytest.mark.more
def test_now_runs_what_is_not_due_and_a_run_of_a_broken_configuration_is_listed(here, records):
    schedule("disable", "trips", "--root", "root")
    ended = schedule("run", "--now", "trips", "--root", "root", code=1)
    (record,) = records()
    expected = {"run_id": record.run_id, "status": "failed", "version": None, "reason": record.reason}
    assert record.reason
    assert json.loads(ended.stdout.splitlines()[-1]) == expected
    assert record.scheduled_by.startswith("trips/now-")
    listed = invoke("runs", "--root", "root")
    assert record.run_id in listed.stdout
    assert json.loads((here / "told.jsonl").read_text())["event"] == "failed"
    refused = schedule("run", "--now", "tripz", "--root", "root", code=2)
    assert "no schedule 'tripz'" in refused.stderr


def test_check_says_what_is_late(here):
    assert schedule("check", "--root", "root").stdout == "1 schedule, none late\n"
    file = here / "root" / "schedules" / "trips.json"
    fields = json.loads(file.read_text())
    past = datetime(2026, 1, 31, tzinfo=timezone.utc).isoformat()
    file.write_text(json.dumps({**fields, "since": past, "created": past, "every_secs": 86_400}))
    late = schedule("check", "--root", "root", code=1).stdout
    assert re.match(r"trips: \d+ late, the oldest by [\dwdhms]+: it was due at 2026-02-01T", late)
    file.write_text("{")
    assert "trips.json cannot be read" in schedule("check", "--root", "root", code=1).stdout


def test_metrics_are_printed_or_written_to_a_file(here):
    text = schedule("metrics", "--root", "root").stdout
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["estimator_pipelines_schedule_enabled"].samples[0].value == 1
    schedule("metrics", "--root", "root", "--metrics-file", here / "p.prom")
    assert "estimator_pipelines_schedule_enabled" in (here / "p.prom").read_text()


def test_manifests_are_made_for_systemd_and_for_a_schedule(here):
    unit = schedule("manifest", "--kind", "systemd", "--root", "root", "--metrics-port", "9200").stdout
    assert f'"--root" "{here}/root" "--metrics-port" "9200"\n' in unit
    words = ("manifest", "--kind", "kubernetes", "--root", "root")
    job = yaml.safe_load(schedule(*words).stdout)
    assert job["metadata"]["name"] == "pipelines-trips"
    assert job["spec"]["schedule"] == "*/5 * * * *"
    job = yaml.safe_load(schedule(*words, "--image", "own:2", "--cron", "0 * * * *").stdout)
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert (job["spec"]["schedule"], container["image"]) == ("0 * * * *", "own:2")
    assert "kubeflow.image = 'Own': give" in schedule(*words, "--image", "Own", code=2).stderr
    file = here / "trips.toml"
    file.write_text(file.read_text().replace('image = "own:1"', ""))
    assert "needs an image: give --image" in schedule(*words, code=2).stderr
    schedule("delete", "trips", "--root", "root")
    refused = schedule("manifest", "--kind", "kubernetes", "--root", "root", code=2)
    assert "There are no schedules" in refused.stderr


@pytest.mark.more
def test_a_backfill_reports_and_notifies_of_failed_spans(spans, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = f'name = "trips"\n[data]\npath = "{spans}"\nlabel = "y"\n'
    config += '[notify]\ncommand = "tee -a told.jsonl"\n'
    (tmp_path / "trips.toml").write_text(config)
    schedule("create", "--config", "trips.toml", "--root", "root", "--on-new-span")
    (tmp_path / "span-8" / "v1" / "data.csv").write_text("x,nothing\n1,0\n")
    shutil.rmtree(tmp_path / "span-9")
    words = ("backfill", "--root", "root", "--from", "8", "--to", "10")
    assert "there is no span 9" in schedule(*words, code=2).stderr
    words = (*words[:-1], "8")
    ended = schedule(*words, code=1)  # it has lost the label
    none = dict.fromkeys(("pushed", "unchanged", "finished", "held", "not_blessed"), 0)
    summary = {"name": "trips", **none, "failed": 1, "left": []}
    assert json.loads(ended.stdout.splitlines()[-1]) == summary
    assert "span 8: failed: " in ended.stderr
    # There is no scheduler that could tell it later.
    assert json.loads((tmp_path / "told.jsonl").read_text())["event"] == "failed"
    assert "nothing" in ended.stderr
