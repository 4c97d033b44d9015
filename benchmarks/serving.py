"""Compares `serve` with MLServer, LitServe and BentoML on one SavedModel: one row a request.

    make bench-serving              # after `make demo`; makes an environment for each peer
    python benchmarks/serving.py --root demo_root --data CSV [--rounds 3] [--secs 10] [--only ours,mlserver]

The servers run one after the other, in alternation from round to round, and the same rows are sent to each,
by `wrk` (Debian: apt-get install wrk) in a separate process, with 16 connections that stay open. Before it
counts, the answers of each server are compared with those of the model. The peers are as their documentation
shows them, in the settings that are fastest here, with their batches and without.
The table has the medians of the rounds. On a busy machine, compare the processor's time of a request: that of
all processes of the server.
"""

import argparse
import dataclasses
import functools
import importlib.metadata
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

# The script may be started from anywhere.
from benchmarks.serving_contestants import (  # noqa: E402
    Contestant,
    Row,
    check,
    contestants,
    cpu_secs,
    free_port,
    resident_bytes,
    running,
    sample_rows,
    wait_until_ready,
)
from benchmarks.tables import format_table  # noqa: E402

CLIENTS = 16
PACKAGES = {
    "mlserver": ("mlserver==1.7.1", "uvloop<0.22"),  # its workers do not start with a newer one
    "litserve": ("litserve==0.2.19",),
    "bentoml": ("bentoml==1.4.40",),
}
_CHECKED_ROWS = 50
_MEBIBYTE = 1 << 20
_WRK = """\
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local bodies, index = {}, 0
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
request = function()
  index = index % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[index])
end
done = function(summary, latency)
  local failed = summary.errors
  print(string.format('{"requests": %d, "usecs": %d, "p50": %d, "p99": %d, "errors": %d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    failed.connect + failed.read + failed.write + failed.status + failed.timeout))
end
"""


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One server in one round."""

    requests_per_sec: float  # Requests per second
    p50_msecs: float  # Median of the time of a request
    p99_msecs: float  # 99th percentile of it
    errors: int  # Requests without an answer, or with another status than 200
    cpu_msecs: float  # Processor time of the server for a request
    mebibytes: float  # Resident size of its processes at the end


def load(url: str, bodies: pathlib.Path, script: pathlib.Path, secs: int) -> dict[str, int]:
    """Returns the figures of `wrk`: requests, usecs, p50 and p99 in microseconds, errors."""
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{secs}s", "-s", str(script), url]
    done = subprocess.run(
        command, env=os.environ | {"BODIES": str(bodies)}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(
    one: Contestant,
    root: pathlib.Path,
    saved_model: pathlib.Path,
    python: str,
    rows: Sequence[Row],
    wanted: Sequence[Sequence[float]],
    secs: int,
) -> Measurement:
    """Returns the measurement of a server, which is started and ended."""
    port = free_port()
    url = f"http://127.0.0.1:{port}{one.path}"
    with tempfile.TemporaryDirectory() as name:
        bodies, script = pathlib.Path(name) / "bodies.jsonl", pathlib.Path(name) / "post.lua"
        bodies.write_text("".join(json.dumps(one.body(row)) + "\n" for row in rows))
        script.write_text(_WRK)
        with running(one, root, saved_model, python, port) as server:
            wait_until_ready(one, url, rows[0], server)
            check(one, url, rows[:_CHECKED_ROWS], wanted)
            load(url, bodies, script, max(1, secs // 3))
            before = cpu_secs(server)
            loads = load(url, bodies, script, secs)
            spent = cpu_secs(server) - before
            size = resident_bytes(server)
    return Measurement(
        requests_per_sec=loads["requests"] / loads["usecs"] * 1e6,
        p50_msecs=loads["p50"] / 1e3,
        p99_msecs=loads["p99"] / 1e3,
        errors=loads["errors"],
        cpu_msecs=spent / max(1, loads["requests"]) * 1e3,
        mebibytes=size / _MEBIBYTE,
    )


def python_of(kind: str, uv: str) -> str:
    """Returns the Python of a peer's environment, which is made the first time."""
    script = REPOSITORY / "scripts" / "bench_environment.sh"
    folder = REPOSITORY / ".bench" / kind
    folder.parent.mkdir(exist_ok=True)
    packages = [*PACKAGES[kind], f"tensorflow=={importlib.metadata.version('tensorflow')}"]
    done = subprocess.run([script, uv, folder, *packages], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"No environment of {' '.join(packages)} could be made")
    return done.stdout.strip()


def table(measurements: dict[str, list[Measurement]]) -> str:
    """Returns the medians of the rounds."""
    header = ["server", "requests/s", "p50 ms", "p99 ms", "errors", "CPU ms/request", "MiB"]
    rows = []
    for name, rounds in measurements.items():
        middle = {
            field.name: statistics.median(getattr(measurement, field.name) for measurement in rounds)
            for field in dataclasses.fields(Measurement)
        }
        rows.append(
            [
                name,
                f"{middle['requests_per_sec']:,.0f}",
                f"{middle['p50_msecs']:.1f}",
                f"{middle['p99_msecs']:.1f}",
                str(sum(measurement.errors for measurement in rounds)),
                f"{middle['cpu_msecs']:.2f}",
                f"{middle['mebibytes']:,.0f}",
            ]
        )
    return format_table(header, rows)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, required=True, help="root of a taxi run")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="its CSV")
    parser.add_argument("--uv", default="uv", help="the program uv, for the environments of the peers")
    parser.add_argument("--peers", type=pathlib.Path, help="folder of existing environments")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--secs", type=int, default=10, help="seconds of load, after a third of them")
    parser.add_argument("--rows", type=int, default=500, help="different rows")
    parser.add_argument("--only", default="ours,mlserver,litserve,bentoml", help="kinds")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing. Debian and Ubuntu: apt-get install wrk")

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import pipelines

    model = pipelines.load(arguments.root)
    types = {column.name: column.type for column in model.columns.values()}
    rows = sample_rows(arguments.data, types, arguments.rows)
    predicted = model.predict(rows[:_CHECKED_ROWS])
    names = [name for name in predicted if name.startswith("probability_")]
    wanted = list(zip(*(predicted[name].tolist() for name in names), strict=True))

    chosen = [contestant for contestant in contestants(types) if contestant.kind in arguments.only.split(",")]
    pythons = {"ours": sys.executable}
    for kind in {contestant.kind for contestant in chosen} - {"ours"}:
        pythons[kind] = (
            str(arguments.peers.absolute() / kind / "bin" / "python")
            if arguments.peers
            else python_of(kind, arguments.uv)
        )
    measurements: dict[str, list[Measurement]] = {contestant.name: [] for contestant in chosen}
    root, saved_model = arguments.root.absolute(), model.folder.absolute()
    measured = functools.partial(measure, rows=rows, wanted=wanted, secs=arguments.secs)
    for number in range(arguments.rounds):
        for contestant in chosen if number % 2 == 0 else reversed(chosen):
            figures = measured(contestant, root, saved_model, pythons[contestant.kind])
            measurements[contestant.name].append(figures)
            print(f"{number + 1}/{arguments.rounds} {contestant.name}: {figures}", file=sys.stderr)
    print(f"{CLIENTS} clients, one row a request, {os.cpu_count()} processors, {arguments.rounds} rounds")
    print(table(measurements))


if __name__ == "__main__":
    main()
