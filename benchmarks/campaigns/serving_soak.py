"""A server under load while versions are pushed and rolled back: failed requests, and its memory.

    python -m benchmarks.campaigns.serving_soak --root demo_root --data taxi.csv [--secs 600] [--pushes 20]
        [--rollbacks 5]

The model that serves in the root is pushed again and again into a separate root, which keeps three
versions; every fourth push is followed by a rollback, both by the project's own functions. 16 clients ask for
one row at a time over connections that stay open. An answer must name a version that was pushed, and have the
predictions of its model. All versions are one model, so its answers cannot show that two versions were mixed
in one; the test of this module pushes two models in turn. The last line is JSON; exit code 1 if a request
failed, or a version did not answer.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving_contestants import (
    Contestant,
    Row,
    contestants,
    free_port,
    resident_bytes,
    running,
    sample_rows,
    wait_until_ready,
)
from components.pusher.versions import prune_versions, push_version
from pipelines.root import Root
from pipelines.root.rollback import rollback
from pipelines.serving.model import load

CLIENTS = 16
KEPT = 3
_TOLERANCE = 1e-5
_LOADING_SECS = 120
_MEBIBYTE = 1 << 20


@dataclasses.dataclass
class Outcome:
    """Outcome of a soak."""

    requests: int = 0  # Requests that were answered
    num_failures: int = 0  # Number of these
    # Messages of those that were not, or wrongly; the first 20
    failures: list[str] = dataclasses.field(default_factory=list)
    # Time of the first answer by each version since its push or the rollback to it, in seconds
    # of `time.monotonic`
    served: dict[int, float] = dataclasses.field(default_factory=dict)
    msecs: list[float] = dataclasses.field(default_factory=list)  # Time of each request
    pushes: list[int] = dataclasses.field(default_factory=list)  # Versions that were pushed
    # Versions to which was rolled back
    rollbacks: list[int] = dataclasses.field(default_factory=list)
    # Resident size of the server, before the first push and after each push and rollback
    mebibytes: list[float] = dataclasses.field(default_factory=list)

    def fail(self, message: str) -> None:
        """Counts a failure."""
        self.num_failures += 1
        self.failures = [*self.failures, message][:20]

    @property
    def silent(self) -> list[int]:
        """Versions that have not answered since they were pushed, or rolled back to."""
        changes = (*self.pushes, *self.rollbacks)
        return [version for version in changes if version not in self.served]

    def summary(self) -> dict[str, Any]:
        """Returns the values of the last line."""
        times = sorted(self.msecs)
        return {
            "requests": self.requests,
            "failed": self.num_failures,
            "failures": self.failures,
            "p50_msecs": round(times[len(times) // 2], 2),
            "p99_msecs": round(times[len(times) * 99 // 100], 2),
            "longest_msecs": round(times[-1], 2),
            "pushes": len(self.pushes),
            "rollbacks": len(self.rollbacks),
            "silent": self.silent,
            "mebibytes": [round(size) for size in self.mebibytes],
        }


class Client:
    """Asks a server over one connection that stays open."""

    def __init__(self, port: int, path: str):
        self._port = port
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        ).encode()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes) -> tuple[int, bytes]:
        """Returns status and body of the answer; after an error, it opens a new connection."""
        reader, writer = self._streams or await asyncio.open_connection("127.0.0.1", self._port)
        self._streams = None
        writer.write(b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body))
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(line for line in lines if line.startswith(b"content-length:"))
        content = await reader.readexactly(int(length.split(b":")[1]))
        self._streams = reader, writer
        return int(lines[0].split()[1]), content


async def soak(
    server: int,
    port: int,
    one: Contestant,
    rows: Sequence[Row],
    wanted: Callable[[int], Sequence[Sequence[float]]],
    changes: Sequence[Callable[[Outcome], None]],
    secs: float,
) -> Outcome:
    """Returns the outcome of a load during which a root changes, at equal distances of time or later.

    After each change, it waits until the version that was pushed, or rolled back to, has answered.
    """
    outcome = Outcome()
    bodies = [json.dumps(one.body(row)).encode() for row in rows]
    start = time.monotonic()
    is_over = asyncio.Event()

    async def ask(client: Client, index: int) -> None:
        start = time.monotonic()
        try:
            status, content = await asyncio.wait_for(client.ask(bodies[index]), 30)
            outcome.msecs.append((time.monotonic() - start) * 1e3)
            outcome.requests += 1
            if status != 200:
                outcome.fail(f"status {status}: {content!r}")
                return
            answer = json.loads(content)
            version, found = int(answer["model_version"]), one.scores(answer)
            expected = wanted(version)[index]
            if max(abs(a - b) for a, b in zip(found, expected, strict=True)) > _TOLERANCE:
                outcome.fail(f"version {version}: {found}, not {expected}, for {rows[index]}")
            outcome.served.setdefault(version, time.monotonic())
        except Exception as error:  # any failure is counted
            outcome.fail(f"{type(error).__name__}: {error}")
            await asyncio.sleep(0.1)

    async def ask_on(first: int) -> None:
        client, index = Client(port, one.path), first
        while not is_over.is_set():
            await ask(client, index % len(bodies))
            index += 1

    async def change_all() -> None:
        for number, change in enumerate(changes, 1):
            due = start + secs * number / (len(changes) + 1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            outcome.mebibytes.append(resident_bytes(server) / _MEBIBYTE)
            await asyncio.to_thread(change, outcome)
            patience = time.monotonic() + _LOADING_SECS
            while outcome.silent and time.monotonic() < patience:
                await asyncio.sleep(0.1)
        await asyncio.sleep(max(0.0, start + secs - time.monotonic()))
        is_over.set()

    await asyncio.gather(change_all(), *(ask_on(number * 7) for number in range(CLIENTS)))
    outcome.mebibytes.append(resident_bytes(server) / _MEBIBYTE)
    return outcome


def run(
    models: Sequence[Path],
    rows_for: Callable[[dict[str, str]], list[Row]],
    work: Path,
    secs: float,
    pushes: int,
    rollbacks: int,
) -> Outcome:
    """Returns the outcome of a soak of the command `serve`."""
    root = Root(work / "root")
    model_of: dict[int, int] = {}

    def push(outcome: Outcome | None = None) -> int:
        index = len(model_of) % len(models)
        newest = max(model_of, default=0)
        version = push_version(str(models[index]), str(root.serving), time.time(), newer_than=newest)
        model_of[version] = index
        prune_versions(str(root.serving), KEPT)
        if outcome is not None:
            outcome.pushes.append(version)
        return version

    def back(outcome: Outcome) -> None:
        version = rollback(root)
        outcome.served.pop(version, None)  # that it answers is seen anew
        outcome.rollbacks.append(version)
        shutil.rmtree(root.withdrawn)

    probabilities = []
    for _ in models:
        model = load(root.path, push())
        types = {column.name: column.type for column in model.columns.values()}
        rows = rows_for(types)
        found = model.predict(rows)
        names = [name for name in found if name.startswith("probability_")]
        probabilities.append(list(zip(*(found[name].tolist() for name in names), strict=True)))
    one = next(one for one in contestants(types) if one.path.startswith("/v2"))
    every = pushes // rollbacks if rollbacks else pushes + 1
    changes: list[Callable[[Outcome], Any]] = []
    for number in range(1, pushes + 1):
        changes.append(push)
        if number % every == 0 and number // every <= rollbacks:
            changes.append(back)
    port = free_port()
    with running(one, root.path, models[0], sys.executable, port) as server:
        wait_until_ready(one, f"http://127.0.0.1:{port}{one.path}", rows[0], server)
        return asyncio.run(
            soak(server, port, one, rows, lambda version: probabilities[model_of[version]], changes, secs)
        )


def main() -> None:
    """Runs the soak and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, required=True, help="root of a taxi run")
    parser.add_argument("--data", type=Path, required=True, help="its CSV")
    parser.add_argument("--secs", type=float, default=600.0)
    parser.add_argument("--pushes", type=int, default=20)
    parser.add_argument("--rollbacks", type=int, default=5)
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    root = Root(arguments.root)
    with tempfile.TemporaryDirectory() as work:
        outcome = run(
            [root.serving / str(root.versions.serving())],
            lambda types: sample_rows(arguments.data, types, 500),
            Path(work),
            arguments.secs,
            arguments.pushes,
            arguments.rollbacks,
        )
    print(json.dumps(outcome.summary()))
    raise SystemExit(bool(outcome.num_failures or outcome.silent))


if __name__ == "__main__":
    main()
