"""`serve` beside MLServer, LitServe and BentoML, around one SavedModel: one row a request.

    make bench-serving                        # makes demo_root/ first, and an environment for each peer
    python benchmarks/serving.py --root demo_root [--uv UV] [--rounds 3] [--secs 10] [--only ours,mlserver]

The servers run one after the other, in alternation from round to round, and the same rows are sent to each, by
`wrk` (Debian: apt-get install wrk) in a process of its own, with 16 connections that stay open. Before it counts, the
answers of each server are compared with those of the model. The peers are as their documentation shows them, with
the settings that are fastest here, and with their batches as well as without.
The table has the medians of the rounds. On a busy machine, compare the processor's time of a request, which is
that of all processes of the server.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks.tables import format_table  # noqa: E402  (the script may be started from anywhere)

CLIENTS = 16
BATCH = 16
PEERS = REPOSITORY / "benchmarks" / "serving_peers"
PACKAGES = {
    "mlserver": ("mlserver==1.7.1", "uvloop<0.22"),  # its workers do not start with a newer one
    "litserve": ("litserve==0.2.19",),
    "bentoml": ("bentoml==1.4.40",),
}
_READY_SECS = 60
_CHECKED_ROWS = 50
_TOLERANCE = 1e-5
_MEBIBYTE = 1 << 20
_DATATYPES = {"INT": "INT64", "FLOAT": "FP32", "BYTES": "BYTES"}
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

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A server.

    Attributes:
      name: Name in the table.
      kind: `ours`, or the peer's package.
      path: Path of a request.
      body: Function from a row to the JSON value of a request.
      scores: Function from the JSON value of an answer to the probabilities of the classes.
      batch: Largest batch of a peer; 0 for none.
    """

    name: str
    kind: str
    path: str
    body: Callable[[Row], Any]
    scores: Callable[[Any], list[float]]
    batch: int = 0


def contestants(types: dict[str, str]) -> list[Contestant]:
    """Returns all servers.

    Args:
      types: Types of the model's columns, by name.
    """

    def tensors(row: Row) -> Any:
        return {
            "inputs": [
                {"name": name, "shape": [1], "datatype": _DATATYPES[types[name]], "data": [value]}
                for name, value in row.items()
            ]
        }

    def probabilities(answer: Any) -> list[float]:
        outputs = {one["name"]: one["data"][0] for one in answer["outputs"]}
        return [value for name, value in outputs.items() if name.startswith("probability_")]

    def mlserver(name: str, batch: int) -> Contestant:
        path = "/v2/models/taxi/infer"
        return Contestant(
            name, "mlserver", path, tensors, lambda found: found["outputs"][0]["data"], batch
        )

    def litserve(name: str, batch: int) -> Contestant:
        return Contestant(
            name, "litserve", "/predict", lambda row: {"row": row}, lambda found: found["scores"], batch
        )

    def bentoml(name: str, batch: int) -> Contestant:
        return Contestant(
            name, "bentoml", "/predict", lambda row: {"rows": [row]}, lambda found: found[0], batch
        )

    return [
        Contestant(
            "serve, TensorFlow Serving's REST",
            "ours",
            "/v1/models/taxi:predict",
            lambda row: {"instances": [row]},
            lambda found: found["predictions"][0]["scores"],
        ),
        Contestant(
            "serve, Open Inference Protocol", "ours", "/v2/models/taxi/infer", tensors, probabilities
        ),
        mlserver("MLServer", 0),
        mlserver("MLServer, batches", BATCH),
        litserve("LitServe", 0),
        litserve("LitServe, batches", BATCH),
        bentoml("BentoML", 0),
        bentoml("BentoML, batches", BATCH),
    ]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One server in one round.

    Attributes:
      requests_per_sec: Requests per second.
      p50_msecs: Median of the time of a request.
      p99_msecs: 99th percentile of it.
      errors: Requests without an answer, or with another status than 200.
      cpu_msecs: Processor time of the server for a request.
      mebibytes: Resident size of its processes at the end.
    """

    requests_per_sec: float
    p50_msecs: float
    p99_msecs: float
    errors: int
    cpu_msecs: float
    mebibytes: float


def rows_of(data: pathlib.Path, types: dict[str, str], count: int) -> list[Row]:
    """Returns the first rows of a CSV, with the types of the model's columns."""
    convert: dict[str, Callable[[str], Any]] = {"INT": int, "FLOAT": float, "BYTES": str}
    rows = []
    with data.open(newline="") as file:
        for number, cells in enumerate(csv.DictReader(file)):
            if number == count:
                break
            rows.append(
                {name: convert[types[name]](cells[name]) if cells[name] else None for name in types}
            )
    return rows


@contextlib.contextmanager
def running(
    one: Contestant, root: pathlib.Path, saved_model: pathlib.Path, python: str, port: int
) -> Iterator[int]:
    """Runs a server; yields the number of its process."""
    environment = os.environ | {
        "SAVED_MODEL": str(saved_model),
        "BATCH": str(one.batch),
        "PORT": str(port),
        "PYTHONPATH": str(REPOSITORY if one.kind == "ours" else PEERS),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "BENTOML_DO_NOT_TRACK": "1",
    }
    beside = str(pathlib.Path(python).parent / one.kind)  # the peer's own command
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "ours": [python, "-m", "pipelines", "serve", "--root", str(root), "--port", str(port)],
            "mlserver": [beside, "start", folder],
            "litserve": [python, str(PEERS / "litserve_server.py")],
            "bentoml": [beside, "serve", "bentoml_service:Taxi", "--port", str(port)]
            + ["--host", "127.0.0.1", "--working-dir", str(PEERS)],
        }
        if one.kind == "ours":
            commands["ours"] += ["--name", "taxi"]
        if one.kind == "mlserver":
            _write_mlserver_settings(pathlib.Path(folder), one.batch, port)
        log = pathlib.Path(folder) / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                commands[one.kind],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process.pid
        except Exception:
            print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _write_mlserver_settings(folder: pathlib.Path, batch: int, port: int) -> None:
    settings = {
        "host": "127.0.0.1",
        "http_port": port,
        "grpc_port": free_port(),
        "metrics_port": free_port(),
        "debug": False,
        "parallel_workers": 0,  # faster here than in a process of its own
    }
    model = {"name": "taxi", "implementation": "mlserver_runtime.Taxi"}
    batches = {"max_batch_size": batch, "max_batch_time": 0.002} if batch else {}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model | batches))


def free_port() -> int:
    """Returns a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def post(url: str, value: Any) -> Any:
    """Returns the JSON value of the answer to a JSON value."""
    request = urllib.request.Request(
        url, json.dumps(value).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def wait_until_ready(one: Contestant, url: str, row: Row, server: int) -> None:
    """Waits for the first prediction.

    Raises:
      SystemExit: There is none in time, or the server has ended.
    """
    end = time.monotonic() + _READY_SECS
    while True:
        try:
            post(url, one.body(row))
            return
        except OSError as error:
            if time.monotonic() > end or not _processes(server):
                raise RuntimeError(f"{one.name} does not answer: {error}") from error
            time.sleep(0.2)


def check(one: Contestant, url: str, rows: Sequence[Row], wanted: Sequence[Sequence[float]]) -> None:
    """Compares the answers of a server with the model's.

    Raises:
      RuntimeError: They differ.
    """
    for row, expected in zip(rows, wanted, strict=True):
        found = one.scores(post(url, one.body(row)))
        if max(abs(a - b) for a, b in zip(found, expected, strict=True)) > _TOLERANCE:
            raise RuntimeError(f"{one.name} predicts {found}, the model {expected}, for {row}")


def load(url: str, bodies: pathlib.Path, script: pathlib.Path, secs: int) -> dict[str, int]:
    """Returns the figures of `wrk`: requests, usecs, p50 and p99 in microseconds, errors."""
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{secs}s", "-s", str(script), url]
    done = subprocess.run(
        command, env=os.environ | {"BODIES": str(bodies)}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def _processes(server: int) -> list[pathlib.Path]:
    """Returns the folders in /proc of a process and of all that it has started."""
    children: dict[int, list[int]] = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, left = [], [server]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return [folder for number in found if (folder := pathlib.Path(f"/proc/{number}")).exists()]


def cpu_secs(server: int) -> float:
    """Returns the processor time of a server's processes."""
    ticks = 0
    for folder in _processes(server):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(server: int) -> int:
    """Returns the resident size of a server's processes."""
    pages = 0
    for folder in _processes(server):
        with contextlib.suppress(OSError):
            pages += int((folder / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(
    one: Contestant,
    root: pathlib.Path,
    saved_model: pathlib.Path,
    python: str,
    rows: Sequence[Row],
    wanted: Sequence[Sequence[float]],
    secs: int,
) -> Measurement:
    """Returns the measurement of a server, which is started and ended.

    Raises:
      RuntimeError: It does not answer, or not as the model.
    """
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
            found = load(url, bodies, script, secs)
            spent = cpu_secs(server) - before
            size = resident_bytes(server)
    return Measurement(
        requests_per_sec=found["requests"] / found["usecs"] * 1e6,
        p50_msecs=found["p50"] / 1e3,
        p99_msecs=found["p99"] / 1e3,
        errors=found["errors"],
        cpu_msecs=spent / max(1, found["requests"]) * 1e3,
        mebibytes=size / _MEBIBYTE,
    )


def python_of(kind: str, uv: str) -> str:
    """Returns the Python of a peer's environment, which is made the first time."""
    import importlib.metadata

    script = REPOSITORY / "scripts" / "bench_environment.sh"
    folder = REPOSITORY / ".bench" / kind
    folder.parent.mkdir(exist_ok=True)
    packages = [*PACKAGES[kind], f"tensorflow=={importlib.metadata.version('tensorflow')}"]
    done = subprocess.run([script, uv, folder, *packages], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"No environment of {' '.join(packages)} could be made")
    return done.stdout.strip()


def table(found: dict[str, list[Measurement]]) -> str:
    """Returns the medians of the rounds."""
    header = ["server", "requests/s", "p50 ms", "p99 ms", "errors", "CPU ms/request", "MiB"]
    rows = []
    for name, rounds in found.items():
        middle = {
            field.name: statistics.median(getattr(one, field.name) for one in rounds)
            for field in dataclasses.fields(Measurement)
        }
        rows.append(
            [
                name,
                f"{middle['requests_per_sec']:,.0f}",
                f"{middle['p50_msecs']:.1f}",
                f"{middle['p99_msecs']:.1f}",
                str(sum(one.errors for one in rounds)),
                f"{middle['cpu_msecs']:.2f}",
                f"{middle['mebibytes']:,.0f}",
            ]
        )
    return format_table(header, rows)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, required=True, help="of a taxi run")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="its CSV")
    parser.add_argument("--uv", default="uv", help="that makes the environments of the peers")
    parser.add_argument("--peers", type=pathlib.Path, help="folder of environments that are there")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--secs", type=int, default=10, help="of load, after a third of it")
    parser.add_argument("--rows", type=int, default=500, help="different rows")
    parser.add_argument("--only", default="ours,mlserver,litserve,bentoml", help="kinds")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing. Debian and Ubuntu: apt-get install wrk")

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import pipelines

    model = pipelines.load(arguments.root)
    types = {column.name: column.type for column in model.columns.values()}
    rows = rows_of(arguments.data, types, arguments.rows)
    predicted = model.predict(rows[:_CHECKED_ROWS])
    names = [name for name in predicted if name.startswith("probability_")]
    wanted = list(zip(*(predicted[name].tolist() for name in names), strict=True))

    chosen = [one for one in contestants(types) if one.kind in arguments.only.split(",")]
    pythons = {"ours": sys.executable}
    for kind in {one.kind for one in chosen} - {"ours"}:
        pythons[kind] = (
            str(arguments.peers.absolute() / kind / "bin" / "python")
            if arguments.peers
            else python_of(kind, arguments.uv)
        )
    found: dict[str, list[Measurement]] = {one.name: [] for one in chosen}
    root, saved_model = arguments.root.absolute(), model.folder.absolute()
    measured = functools.partial(measure, rows=rows, wanted=wanted, secs=arguments.secs)
    for number in range(arguments.rounds):
        for one in chosen if number % 2 == 0 else reversed(chosen):
            figures = measured(one, root, saved_model, pythons[one.kind])
            found[one.name].append(figures)
            print(f"{number + 1}/{arguments.rounds} {one.name}: {figures}", file=sys.stderr)
    print(f"{CLIENTS} clients, one row a request, {os.cpu_count()} processors, {arguments.rounds} rounds")
    print(table(found))


if __name__ == "__main__":
    main()
