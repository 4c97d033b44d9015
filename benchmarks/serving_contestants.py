"""The servers that `serving.py` compares: how each is started and asked, and what it uses."""

import contextlib
import csv
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PEERS = REPOSITORY / "benchmarks" / "serving_peers"
BATCH = 16
_READY_SECS = 60
_TOLERANCE = 1e-5
_DATATYPES = {"INT": "INT64", "FLOAT": "FP32", "BYTES": "BYTES"}

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A server."""

    name: str
    kind: str  # `ours`, or the peer's package
    path: str  # Path of a request
    body: Callable[[Row], Any]  # Function from a row to the JSON value of a request
    # Function from the JSON value of an answer to the probabilities of the classes
    scores: Callable[[Any], list[float]]
    batch: int = 0  # Largest batch of a peer; 0 for none


def contestants(types: dict[str, str]) -> list[Contestant]:
    """Returns all servers."""

    def tensors(row: Row) -> Any:
        return {
            "inputs": [
                {"name": name, "shape": [1], "datatype": _DATATYPES[types[name]], "data": [value]}
                for name, value in row.items()
            ]
        }

    def probabilities(answer: Any) -> list[float]:
        outputs = {output["name"]: output["data"][0] for output in answer["outputs"]}
        return [value for name, value in outputs.items() if name.startswith("probability_")]

    def mlserver(name: str, batch: int) -> Contestant:
        path = "/v2/models/taxi/infer"
        return Contestant(name, "mlserver", path, tensors, lambda answer: answer["outputs"][0]["data"], batch)

    def litserve(name: str, batch: int) -> Contestant:
        return Contestant(
            name, "litserve", "/predict", lambda row: {"row": row}, lambda answer: answer["scores"], batch
        )

    def bentoml(name: str, batch: int) -> Contestant:
        return Contestant(
            name, "bentoml", "/predict", lambda row: {"rows": [row]}, lambda answer: answer[0], batch
        )

    return [
        Contestant(
            "serve, TensorFlow Serving's REST",
            "ours",
            "/v1/models/taxi:predict",
            lambda row: {"instances": [row]},
            lambda answer: answer["predictions"][0]["scores"],
        ),
        Contestant("serve, Open Inference Protocol", "ours", "/v2/models/taxi/infer", tensors, probabilities),
        mlserver("MLServer", 0),
        mlserver("MLServer, batches", BATCH),
        litserve("LitServe", 0),
        litserve("LitServe, batches", BATCH),
        bentoml("BentoML", 0),
        bentoml("BentoML, batches", BATCH),
    ]


def sample_rows(data: pathlib.Path, types: dict[str, str], count: int) -> list[Row]:
    """Returns the first rows of a CSV, with the types of the model's columns."""
    convert: dict[str, Callable[[str], Any]] = {"INT": int, "FLOAT": float, "BYTES": str}
    rows = []
    with data.open(newline="") as file:
        for number, cells in enumerate(csv.DictReader(file)):
            if number == count:
                break
            rows.append({name: convert[types[name]](cells[name]) if cells[name] else None for name in types})
    return rows


@contextlib.contextmanager
def running(
    contestant: Contestant, root: pathlib.Path, saved_model: pathlib.Path, python: str, port: int
) -> Iterator[int]:
    """Runs a server; yields the number of its process."""
    environment = os.environ | {
        "SAVED_MODEL": str(saved_model),
        "BATCH": str(contestant.batch),
        "PORT": str(port),
        "PYTHONPATH": str(REPOSITORY if contestant.kind == "ours" else PEERS),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "BENTOML_DO_NOT_TRACK": "1",
    }
    beside = str(pathlib.Path(python).parent / contestant.kind)  # the peer's own command
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "ours": [python, "-m", "pipelines", "serve", "--root", str(root), "--port", str(port)],
            "mlserver": [beside, "start", folder],
            "litserve": [python, str(PEERS / "litserve_server.py")],
            "bentoml": [
                *(beside, "serve", "bentoml_service:Taxi", "--host", "127.0.0.1"),
                *("--port", str(port), "--working-dir", str(PEERS)),
            ],
        }
        if contestant.kind == "ours":
            commands["ours"] += ["--name", "taxi"]
        if contestant.kind == "mlserver":
            _write_mlserver_settings(pathlib.Path(folder), contestant.batch, port)
        log = pathlib.Path(folder) / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                commands[contestant.kind],
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
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
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
        "parallel_workers": 0,  # faster here than in a separate process
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
    request = urllib.request.Request(url, json.dumps(value).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def wait_until_ready(contestant: Contestant, url: str, row: Row, server: int) -> None:
    """Waits for the first prediction."""
    end = time.monotonic() + _READY_SECS
    while True:
        try:
            post(url, contestant.body(row))
            return
        except OSError as error:
            if time.monotonic() > end or not _processes(server):
                raise RuntimeError(f"{contestant.name} does not answer: {error}") from error
            time.sleep(0.2)


def check(contestant: Contestant, url: str, rows: Sequence[Row], wanted: Sequence[Sequence[float]]) -> None:
    """Compares the answers of a server with the model's."""
    for row, expected in zip(rows, wanted, strict=True):
        scores = contestant.scores(post(url, contestant.body(row)))
        if max(abs(a - b) for a, b in zip(scores, expected, strict=True)) > _TOLERANCE:
            raise RuntimeError(f"{contestant.name} predicts {scores}, the model {expected}, for {row}")


def _processes(server: int) -> list[pathlib.Path]:
    """Returns the folders in /proc of a process and of all that it has started."""
    children: dict[int, list[int]] = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    processes, left = [], [server]
    while left:
        processes.append(left.pop())
        left += children.get(processes[-1], [])
    return [folder for number in processes if (folder := pathlib.Path(f"/proc/{number}")).exists()]


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
