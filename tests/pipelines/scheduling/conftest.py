import json
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest

from pipelines.root.history import new_run, unfinished_run
from pipelines.root.records import RunRecord
from pipelines.scheduling.clock import Stop
from pipelines.scheduling.history import ENDED, History
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.scheduler import Scheduler
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import iso

START = datetime(2026, 1, 31, 10, 0, tzinfo=timezone.utc)


def at(minutes):
    """Returns a time in minutes since the start."""
    return START + timedelta(minutes=minutes)


class FakeClock:
    """A clock whose time passes only while somebody waits."""

    def __init__(self, start=START):
        self.time, self.secs, self.naps = start, 100.0, []
        self.at_sleep = lambda: None

    def now(self):
        return self.time

    def monotonic(self):
        return self.secs

    def sleep(self, secs):
        self.naps.append(secs)
        self.pass_by(secs)
        self.at_sleep()

    def pass_by(self, secs):
        self.time += timedelta(seconds=secs)
        self.secs += secs


class FakeProcess:
    """A run that takes some seconds of the fake time."""

    pid = 4242

    def __init__(self, clock, secs, end, is_stubborn):
        self._clock, self._left, self._end, self.signals = clock, secs, end, []
        self._is_stubborn = is_stubborn

    def wait(self, secs):
        self._clock.pass_by(min(secs, self._left))
        self._left -= secs
        return self._end(self.signals) if self._left <= 0 else None

    def stop(self):
        self.signals.append("stop")
        if not self._is_stubborn:
            self._left = min(self._left, 3)

    def kill(self):
        self.signals.append("kill")
        self._left = 0


class FakeRuns:
    """A stand-in for `python -m pipelines run` that writes the records of its runs."""

    def __init__(self, root, clock):
        self.root, self.clock, self.launches, self.processes = root, clock, [], []
        # Of the next runs: the status of a record, or its fields (`running`: it is killed); fields of the
        # last line, if there is an `error` among them, and no record; or a function of the launch that
        # returns an exit code. Then: `pushed`.
        self.outcomes = []
        self.secs = 5  # of a run
        self.is_stubborn = False  # runs do not end when they are asked to

    def start(self, launch):
        self.launches.append(launch)
        outcome = self.outcomes.pop(0) if self.outcomes else "pushed"
        started = iso(self.clock.now())
        end = partial(self.end, launch, outcome, started)
        process = FakeProcess(self.clock, self.secs, end, self.is_stubborn)
        self.processes.append(process)
        return process

    def end(self, launch, outcome, started, signals):
        if callable(outcome):
            return outcome(launch)
        fields = {"status": outcome} if isinstance(outcome, str) else outcome
        launch.stdout.parent.mkdir(parents=True, exist_ok=True)
        if "error" in fields:
            launch.stdout.write_text(f"noise\n{json.dumps({'status': 'failed', **fields})}\n")
            return 2
        if signals:
            fields = {"status": "interrupted"}
        words = launch.command
        tick = words[words.index("--scheduled-by") + 1]
        if "--resume" in words:
            former = unfinished_run(self.root)
            record = former.changed(attempt=former.attempt + 1, reason=None)
        else:
            record = RunRecord(
                **new_run(self.root, tick), name="trips", status="running", started=started,
                config={"name": "trips"}, data_fingerprint="", log=str(self.root.path / "log"),
            )  # fmt: skip
        ended = iso(self.clock.now()) if fields["status"] in ENDED else None
        self.root.records.write(record.changed(finished=ended, **fields))
        launch.stdout.write_text("noise\n")
        return -9 if fields["status"] == "running" else 0

    def option(self, number, name):
        """Returns the value of an option of a run."""
        command = self.launches[number].command
        return command[command.index(name) + 1] if name in command else None

    def ticks(self):
        """Returns the keys of the ticks that were started, in their order."""
        ids = (self.option(number, "--scheduled-by") for number in range(len(self.launches)))
        return [tick.partition("/")[2] for tick in ids]

    def spans(self):
        """Returns the spans that runs were started with, in their order."""
        options = (self.option(number, "--set") for number in range(len(self.launches)))
        return [text.removeprefix("data.spans=") for text in options]


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def stop():
    return Stop()


@pytest.fixture
def runs(root, clock):
    return FakeRuns(root, clock)


@pytest.fixture
def told():
    """The notifications sent to the user."""
    return []


@pytest.fixture
def config_file(spans, tmp_path):
    """A configuration of the spans 8, 9 and 10; notifications go to the fixture `told`."""
    file = tmp_path / "trips.toml"
    file.write_text(f'name = "trips"\n[data]\npath = "{spans}"\nlabel = "y"\n[notify]\ncommand = "tell"\n')
    return file


@pytest.fixture
def make_schedule(tmp_path, config_file):
    def make(**changes):
        paths = {"config": str(config_file), "working_dir": str(tmp_path)}
        fields = {"name": "trips", **paths, "since": START, "created": START, **changes}
        if not {"cron", "every_secs", "on_new_span"} & set(changes):
            fields["every_secs"] = 60
        return Schedule.model_validate(fields)

    return make


@pytest.fixture
def store(root):
    return ScheduleStore(root)


@pytest.fixture
def add(store, make_schedule):
    """Returns a function that stores a schedule."""
    return lambda **changes: store.write(make_schedule(**changes))


@pytest.fixture
def history(root):
    """Returns a function that reads the runs of the root."""
    return lambda: History.read(root)


@pytest.fixture
def make_scheduler(root, clock, stop, runs, told):
    """Returns a function that makes a scheduler, as one that was just started."""

    def tell(config, content):
        if content["event"] in config.on:
            told.append(content)
        return ""

    def make(**changes):
        return Scheduler(root, clock, stop, **{"start": runs.start, "tell": tell, **changes})

    return make


@pytest.fixture
def scheduler(make_scheduler):
    return make_scheduler()


@pytest.fixture
def record(root, killed):
    """Returns a function that writes the record of a run."""

    def write(run_id, **fields):
        made = RunRecord(**{**vars(killed), "run_id": run_id, **fields})
        root.records.write(made)
        return made

    (root.path / "runs" / f"{killed.run_id}.json").unlink()
    return write
