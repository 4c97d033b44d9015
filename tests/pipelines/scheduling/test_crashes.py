"""A scheduler is killed at each thing that it writes, sends or starts; the next one goes on."""

import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pipelines.scheduling.store import ScheduleStore

PROGRAM = Path(__file__).with_name("crashing_scheduler.py")
PROJECT = Path(__file__).parents[3]
RUN = ["start", "tell", "write"]
MOMENTS = ["write", "tell", *RUN, *RUN]
"""Of two ticks with their notifications; before them the copy of [notify], and the ticks that are late."""

STARTS = [number for number, name in enumerate(MOMENTS, 1) if name == "start"]


@pytest.fixture
def scheduler_with(root, make_schedule, config_file):
    notify = 'on = ["pushed", "missed", "failed"]\ntimeout_secs = 5\n'
    config_file.write_text(config_file.read_text() + notify)
    ScheduleStore(root).write(make_schedule(missed="catch-up"))

    def run(number, how):
        words = [sys.executable, str(PROGRAM), str(root), str(number), how]
        environment = {"PYTHONPATH": ":".join([str(PROJECT), *sys.path]), "PATH": "/usr/bin:/bin"}
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)

    return run


def holds(root):
    """Checks that both ticks are done, that each was run once, and that all notifications were sent."""
    ran = (root.path.parent / "ran.txt").read_text().splitlines()
    assert ran == ["trips/20260131T100100Z", "trips/20260131T100200Z"]
    records = root.records.read_all()
    assert [record.status for record in records] == ["pushed"] * 2
    assert [record.scheduled_by for record in records] == ran
    assert {record.notification for record in records} == {""}
    told = [json.loads(line) for line in (root.path.parent / "told.jsonl").read_text().splitlines()]
    ids = Counter(one["id"] for one in told)
    assert set(ids) == {
        "trips-20260131T100100Z-missed",
        "trips-20260131T100100Z-pushed",
        "trips-20260131T100200Z-pushed",
    }
    return ids


def wait_for_runs(root):
    """Waits for the end of runs that nobody waits for any more: there should be none."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        lines = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                lines.append(file.read_bytes())
        if not any(b"small_run.py" in line and str(root).encode() in line for line in lines):
            return
        time.sleep(0.1)


@pytest.mark.more
def test_these_are_the_moments(scheduler_with, root):
    ended = scheduler_with(0, "alone")
    assert ended.stdout == f"2 ticks: {' '.join(MOMENTS)}\n", ended.stderr
    assert max(holds(root).values()) == 1


@pytest.mark.more
@pytest.mark.parametrize(
    ("number", "how"),
    [
        *(
            pytest.param(number, "alone", marks=() if 3 <= number <= 5 else pytest.mark.slow)
            for number in range(1, len(MOMENTS) + 1)
        ),
        *((number, "both") for number in STARTS),
    ],
)
def test_nothing_is_lost_and_nothing_is_done_twice(scheduler_with, root, number, how):
    killed = scheduler_with(number, how)
    assert killed.returncode == -9, killed.stderr
    assert killed.stdout == f"killed after {MOMENTS[number - 1]}\n"
    ended = scheduler_with(0, "alone")
    assert ended.returncode == 0, ended.stderr
    wait_for_runs(root)
    ids = holds(root)
    # Between the sending and the record of it, nobody can know; then it is sent again, with the same id. What
    # is missed is told before its run starts, and known to be told once there is a record of the run.
    is_told_again = MOMENTS[number - 1] == "tell" or number == STARTS[0]
    assert max(ids.values()) == (2 if is_told_again else 1)
