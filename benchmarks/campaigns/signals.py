"""Signals at random moments of `python -m pipelines run`: does each end it in order, and is nothing lost?

    nice python -m benchmarks.campaigns.signals [--signals 200] [--kills 84] [--progress FILE]

Each row is a run of all components in a new root, a signal (SIGINT and SIGTERM in turns), and `--resume`.
The option `--kills` kills the first rows instead: SIGKILL, to the run and its workers.
The moments are drawn evenly over the time that a run without a signal takes. Most runs are forks of this
process, which has finished the imports; some are the plain command, with its imports. Checked are:

- the process ends within 30 s, and leaves no process of its session behind;
- its exit code is 130 and nothing is pushed, or it is 0, the version was there before the signal, and the
  last line says so;
- the last line, the record and the versions that serve say the same;
- `--resume` continues the same run: finished components are not run again, and it pushes once. Where
  there was no record yet, a new run is started.

After a kill, only the last point is checked, and that each served version is complete.

The exit code is 1 if any of it does not hold. The progress file has a line for each row, as it ends.
"""

import argparse
import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.campaigns.forked_run import ForkedRun, import_all
from benchmarks.tables import format_table
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.run_process import Launch, RunProcess, last_line, output_tail

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG = """\
name = "signals"
[data]
path = "rows.csv"
label = "is_above"
[trainer]
model = "linear"
train_steps = {steps}
"""
LIMIT_SECS = 30.0
_LONGEST_RUN_SECS = 900.0
_POLL_SECS = 0.05
_HEADER = ("during", "how", "signal", "at s", "ended in s", "exit", "pushed", "resumed", "wrong")


@dataclasses.dataclass
class Row:
    """A signal, and what came of it."""

    # Component that ran when the signal was sent, or the time before or after all of them
    during: str
    is_plain: bool  # True for the plain command
    number: signal.Signals  # Number of the signal
    at_secs: float  # After the start of the process
    ended_secs: float = 0.0  # Seconds from the signal to the end of the process
    code: int | None = None  # Its exit code
    pushed: bool = False  # True if a version was there before the signal
    resumed: str = "-"  # Outcome of `--resume`
    # All that should have been otherwise
    wrong: list[str] = dataclasses.field(default_factory=list)

    def cells(self) -> tuple[str, ...]:
        """Returns the row of the table."""
        return (
            self.during,
            "plain" if self.is_plain else "fork",
            self.number.name,
            f"{self.at_secs:.1f}",
            f"{self.ended_secs:.1f}",
            str(self.code),
            "yes" if self.pushed else "no",
            self.resumed,
            "; ".join(self.wrong) or "-",
        )


class Campaign:
    """Runs the command in new roots."""

    def __init__(self, folder: Path, rows: int, steps: int, seed: int):
        self._folder = folder
        self._random = random.Random(seed)
        self._secs: dict[bool, float] = {}
        self._config = folder / "signals.toml"
        self._config.write_text(CONFIG.format(steps=steps))
        data = random.Random(seed)
        pairs = [(data.random(), data.random()) for _ in range(rows)]
        lines = [f"{a:.4f},{b:.4f},{int(a + b > 1)}" for a, b in pairs]
        (folder / "rows.csv").write_text("\n".join(["a,b,is_above", *lines, ""]))

    def measure(self, is_plain: bool) -> float:
        """Runs without a signal, and returns the seconds that it takes."""
        root = self._folder / f"measured-{is_plain}"
        start = time.monotonic()
        process = self._start(root, is_plain)
        code = process.wait(_LONGEST_RUN_SECS)
        self._secs[is_plain] = time.monotonic() - start
        line = last_line(self._out(root))
        if code != 0 or line is None or line["status"] != "pushed":
            printed = output_tail(self._out(root).with_suffix(".err"), 2_000)
            raise RuntimeError(f"A run without a signal ended with exit code {code}: {line or printed}")
        shutil.rmtree(root)
        return self._secs[is_plain]

    def signal(self, index: int, is_plain: bool, is_kill: bool) -> Row | None:
        """Makes a run, sends it a signal, and resumes it; None if it had ended before."""
        root = self._folder / f"root-{index}"
        number = signal.SIGKILL if is_kill else (signal.SIGINT, signal.SIGTERM)[index // 2 % 2]
        at_secs = self._random.uniform(0, self._secs[is_plain])
        process = self._start(root, is_plain)
        if process.wait(at_secs) is not None:
            shutil.rmtree(root)
            return None
        row = Row(_running(root), is_plain, number, at_secs)
        versions = Root(root).versions.served()
        sent = time.monotonic(), time.time()
        (os.killpg if is_kill else os.kill)(process.pid, number)
        row.code = _wait(process, 4 * LIMIT_SECS)
        row.ended_secs = time.monotonic() - sent[0]
        # A version may have appeared between the look and the signal; a rename changes the folder's ctime.
        row.pushed = bool(versions) or any(
            (root / "serving" / str(version)).stat().st_ctime <= sent[1]
            for version in Root(root).versions.served()
        )
        row.wrong = list(_faults_of_kill(root, row) if is_kill else self._faults(root, row, process.pid))
        record = _record(root)
        if not row.pushed or (is_kill and record is not None and record.status != "pushed"):
            row.resumed = self._resume(root, row)
        if not row.wrong:
            shutil.rmtree(root)
        return row

    def _start(self, root: Path, is_plain: bool, *options: str) -> RunProcess | ForkedRun:
        out = self._out(root)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pipelines", "run", "--config", str(self._config)]
        command += ["--root", str(root), *options]
        launch = Launch(tuple(command), str(REPOSITORY), out, out.with_suffix(".err"))
        return RunProcess(launch) if is_plain else ForkedRun(launch)

    def _out(self, root: Path) -> Path:
        return root / "printed" / "out"

    def _faults(self, root: Path, row: Row, pid: int) -> Iterator[str]:
        if row.code is None or row.ended_secs > LIMIT_SECS:
            yield f"it took {row.ended_secs:.0f} s to end"
        if _has_processes(pid):
            yield "it has left processes behind"
        line, record = last_line(self._out(root)), _record(root)
        if line is None:
            yield "no last line"
            return
        expected = (0, "pushed") if row.pushed else (130, "interrupted")
        if (row.code, line["status"]) != expected:
            yield f"exit code {row.code} and {line['status']}, not {expected}"
        versions = [str(version) for version in Root(root).versions.served()]
        if versions != ([line["version"]] if row.pushed else []):
            yield f"version {line['version']} in the last line, {versions} serve"
        if (record.run_id if record else None) != line["run_id"]:
            yield f"run {line['run_id']} in the last line, and a record of {record and record.run_id}"
        if record and (record.status, record.version) != (line["status"], line["version"]):
            yield f"the record has {record.status}, {record.version}"

    def _resume(self, root: Path, row: Row) -> str:
        """Resumes a run, or starts it anew where there is none; returns what came of it."""
        before = _record(root)
        process = self._start(root, False, *(("--resume",) if before else ()))
        code = process.wait(_LONGEST_RUN_SECS)
        after, versions = _record(root), Root(root).versions.served()
        if code != 0 or after is None or after.status != "pushed" or len(versions) != 1:
            row.wrong.append(f"then exit code {code}, versions {versions}")
            return "no"
        if before is None:
            return "anew"
        if after.run_id != before.run_id:
            row.wrong.append(f"it continued run {after.run_id}, not {before.run_id}")
        finished = {one.name for one in before.components if one.status != "failed"}
        again = [one.name for one in after.components if one.name in finished and one.status != "cached"]
        if again:
            row.wrong.append(f"{', '.join(again)} ran again")
        return "no" if again or after.run_id != before.run_id else "yes"


def _faults_of_kill(root: Path, row: Row) -> Iterator[str]:
    if row.code != -signal.SIGKILL:
        yield f"exit code {row.code}"
    for version in Root(root).versions.served():
        if not (root / "serving" / str(version) / "saved_model.pb").is_file():
            yield f"version {version} is not whole"


def _running(root: Path) -> str:
    """Returns the current step of a run."""
    record = _record(root)
    if record is None:
        return "before the run"
    done = len(record.components)
    if not record.graph:
        return "before the components"
    names = _in_order(record.graph)
    return names[done] if done < len(names) else "after the components"


def _in_order(graph: dict[str, list[str]]) -> list[str]:
    """Returns the components in the order in which they run."""
    names: list[str] = []
    while len(names) < len(graph):
        names.append(next(n for n in graph if n not in names and set(graph[n]) <= set(names)))
    return names


def _record(root: Path) -> RunRecord | None:
    return next(reversed(Root(root).records.read_all()), None)


def _wait(process: RunProcess | ForkedRun, secs: float) -> int | None:
    """Waits for the end of a process, more closely than `process.wait`; kills it at last."""
    deadline = time.monotonic() + secs
    while time.monotonic() < deadline:
        if (code := process.wait(_POLL_SECS)) is not None:
            return code
    process.kill()
    process.wait(10)
    return None


def _has_processes(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> int:
    """Runs the campaign, prints its table and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--kills", type=int, default=0, help="further rows, before the signals")
    parser.add_argument("--plain-every", type=int, default=5, help="0: no plain command")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-secs", type=float, default=float("inf"), help="no further signals then")
    parser.add_argument("--progress", type=Path, help="file for a line of each signal, as it ends")
    args = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import_all()
    start = time.monotonic()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="signals-", ignore_cleanup_errors=True) as folder:
        campaign = Campaign(Path(folder), args.rows, args.steps, args.seed)
        for is_plain in (False, True) if args.plain_every else (False,):
            secs = campaign.measure(is_plain)
            _say(f"{'plain command' if is_plain else 'fork'}: {secs:.1f} s without a signal", args.progress)
        index = 0
        while len(rows) < args.kills + args.signals and time.monotonic() - start < args.max_secs:
            is_plain = bool(args.plain_every) and index % args.plain_every == args.plain_every - 1
            row = campaign.signal(index, is_plain, len(rows) < args.kills)
            index += 1
            if row is not None:
                rows.append(row)
                _say(json.dumps(dict(zip(_HEADER, row.cells(), strict=True))), args.progress)
    print(format_table(_HEADER, [row.cells() for row in rows]))
    wrong, longest = sum(bool(row.wrong) for row in rows), max(row.ended_secs for row in rows)
    print(
        f"\n{len(rows)} signals, {wrong} wrong; the longest took {longest:.1f} s to end; "
        f"{sum(row.pushed for row in rows)} had been pushed before; "
        f"{sum(row.resumed == 'yes' for row in rows)} were resumed; seed {args.seed}"
    )
    return int(wrong > 0)


def _say(text: str, progress: Path | None) -> None:
    print(text, file=sys.stderr, flush=True)
    if progress is not None:
        with progress.open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
