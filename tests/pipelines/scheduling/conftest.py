import json
from datetime import datetime, timedelta, timezone

import pytest

from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.clock import Stop
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.scheduler import Scheduler

START = datetime(2026, 1, 31, 10, 0, tzinfo=timezone.utc)


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

    def __init__(self, clock, secs, end):
        self._clock, self._left, self._end, self.signals = clock, secs, end, []

    def wait(self, secs):
        self._clock.pass_by(min(secs, self._left))
        self._left -= secs
        return self._end() if self._left <= 0 else None

    def stop(self):
        self.signals.append("stop")
        self._left, self._end = min(self._left, 3), lambda: 130

    def kill(self):
        self.signals.append("kill")
        self._left = 0


class FakeRuns:
    """A stand-in for `python -m pipelines run`.

    Attributes:
      outcomes: Outcomes of the next runs: a status, or a dict of the last line, or a function of the launch.
      launches: Launches so far.
      secs: Duration of a run.
    """

    def __init__(self, root, clock):
        self.root, self.clock, self.outcomes, self.launches, self.secs = root, clock, [], [], 5
        self.processes = []

    def start(self, launch):
        self.launches.append(launch)
        number = len(self.launches)
        outcome = self.outcomes.pop(0) if self.outcomes else "pushed"
        process = FakeProcess(self.clock, self.secs, lambda: self.end(launch, number, outcome))
        self.processes.append(process)
        return process

    def end(self, launch, number, outcome):
        if callable(outcome):
            return outcome(launch)
        line = (
            {"run_id": f"run-{number}", "status": outcome} if isinstance(outcome, str) else outcome
        )
        launch.stdout.parent.mkdir(parents=True, exist_ok=True)
        launch.stdout.write_text("noise\n" + json.dumps(line) + "\n")
        return 0

    def option(self, number, name):
        """Returns the value of an option of a run."""
        command = self.launches[number].command
        return command[command.index(name) + 1] if name in command else None


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def stop():
    return Stop()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


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
    file.write_text(
        f'name = "trips"\n[data]\npath = "{spans}"\nlabel = "y"\n[notify]\ncommand = "tell"\n'
    )
    return file


@pytest.fixture
def make_schedule(tmp_path, config_file):
    def make(**changes):
        fields = {
            "name": "trips",
            "config": str(config_file),
            "working_dir": str(tmp_path),
            "since": START,
            "created": START,
            **changes,
        }
        if not {"cron", "every_secs", "on_new_span"} & set(changes):
            fields["every_secs"] = 60
        return Schedule.model_validate(fields)

    return make


@pytest.fixture
def ledger(root):
    return Ledger(root / "schedules" / "trips", "trips")


@pytest.fixture
def scheduler(root, clock, stop, runs, told):
    return Scheduler(
        Root(root),
        clock,
        stop,
        start=runs.start,
        deliver=lambda config, content: told.append(content),
    )


@pytest.fixture
def record(root, killed):
    """Returns a function that writes the record of a run."""

    def write(run_id, **fields):
        made = RunRecord(**{**vars(killed), "run_id": run_id, **fields})
        Root(root).records.write(made)
        return made

    Root(root).records.folder.joinpath(f"{killed.run_id}.json").unlink()
    return write
