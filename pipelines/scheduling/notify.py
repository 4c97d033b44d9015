"""Notifications of scheduled runs: one JSON object for each event, on the standard input of a command."""

import contextlib
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.config.notify import NotifyConfig
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling import webhook
from pipelines.scheduling.ticks import Tick, iso

Content = dict[str, Any]

Tell = Callable[[NotifyConfig, Content], str]
"""Function that sends the JSON of a notification; returns the reason if it failed, or an empty text."""

_OF_RUN = ("run_id", "status", "reason", "version", "serving_version")


def run_events(root: Root, tick: Tick, run: RunRecord, time: str) -> list[Content]:
    content = {name: getattr(run, name) for name in (*_OF_RUN, "report", "log")}
    content["metrics"] = {
        name: value if value is not None and math.isfinite(value) else None  # JSON has no NaN
        for name, value in run.metrics.items()
    }
    events = []
    source = root.records.read(run.same_as) if run.same_as else None
    is_known = source is not None and source.status == "held"  # told when it was held, or decided
    if not (is_known and run.status in ("held", "not_blessed")):
        events.append(_event(root, tick, run.status, _sentence(run), time, **content))
    drift_notes = (note for note in run.notes if note.startswith(NOTE_PREFIX))
    if notes := [note.removeprefix(NOTE_PREFIX) for note in drift_notes]:
        text = f"the data have changed: {notes[0]}"
        events.append(_event(root, tick, "drifted", text, time, **content, notes=notes))
    return events


def missed_event(root: Root, late: Sequence[Tick], time: str, text: str = "") -> Content:
    """Returns the event of ticks that should have been started by now, or of spans that are not run."""
    first, last = iso(late[0].due), iso(late[-1].due)
    if not text:
        many = f"{len(late)} runs were due between {first} and {last}"
        single = f"a run was due at {first}"
        text = f"{many if len(late) > 1 else single} and had not started by {time}"
    missed = {"count": len(late), "first": first, "last": last}
    # Its id is that of the first one: the others may grow in number until it is sent again.
    event_id = f"{late[0].schedule}-{late[0].key}-missed"
    return {**_event(root, late[-1], "missed", text, time, missed=missed), "id": event_id}


def tell(config: NotifyConfig, content: Content) -> str:
    """Sends a notification, if it is asked for; returns the error, or an empty text."""
    if content["event"] not in config.on:
        return ""
    errors = []
    if config.command:
        words = shlex.split(config.command)
        errors.append(_run("notify.command", words, content, config.timeout_secs, {}))
    if config.webhook or config.webhook_env:
        address = config.webhook or os.environ.get(str(config.webhook_env), "").strip()
        # Isolated: the modules next to it must not hide those of the standard library.
        words = [sys.executable, "-I", webhook.__file__]
        variables = {webhook.VARIABLE: address}
        errors.append(_run("notify.webhook", words, content, config.timeout_secs, variables))
    return "; ".join(filter(None, errors))


def _run(
    name: str, words: list[str], content: Content, timeout_secs: float, variables: dict[str, str]
) -> str:
    """Runs a command with the JSON as its input, and returns the reason if it failed."""
    # A file for its input and a pipe for its output need no thread. A command that says more than a pipe
    # holds (64 KiB) stands still, and is stopped like one that takes too long.
    with tempfile.TemporaryFile() as body:
        body.write(json.dumps(content, allow_nan=False).encode() + b"\n")
        body.seek(0)
        try:
            process = subprocess.Popen(
                words,
                stdin=body,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **variables},
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it contains a NUL"
            return f"{name}: {words[0]} cannot be run: {reason}"
    if process.stdout is None:
        raise ValueError("The process was started with a pipe.")
    with process.stdout as output:
        try:
            process.wait(timeout_secs)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with its child processes
            process.wait()
            return f"{name} had not ended after {timeout_secs:g} s"
        os.set_blocking(output.fileno(), False)  # a child process may hold it open
        end = _without_secrets((output.read() or b"").decode(errors="replace"), words[1:])
    return f"{name} ended with exit code {process.returncode}: {end}" if process.returncode else ""


def _event(root: Root, tick: Tick, event: str, text: str, time: str, **fields: Any) -> Content:
    return {
        "schema": 1,
        "id": f"{tick.schedule}-{tick.key}-{event}",
        "event": event,
        "time": time,
        "text": f"{tick.schedule}: {text}",
        "schedule": tick.schedule,
        "root": str(root),
        "host": os.uname().nodename,
        "tick": tick.key,
        "due": iso(tick.due),
        **dict.fromkeys(_OF_RUN),
        "metrics": {},
        "notes": [],
        **dict.fromkeys(("report", "log", "missed")),
        **fields,
    }


def _sentence(run: RunRecord) -> str:
    if run.status == "pushed":
        return f"run {run.run_id} pushed" + (f" version {run.version}" if run.version else "")
    words = {
        "unchanged": "pushed nothing new",
        "finished": "finished",
        "held": "holds its model until `approve` decides",
        "not_blessed": "was not blessed",
    }
    text = f"run {run.run_id} {words.get(run.status, 'failed')}"
    return f"{text}: {run.reason}" if run.reason else text


def _without_secrets(text: str, arguments: list[str]) -> str:
    """Returns the end of a command's output without its arguments, and of addresses only the host."""
    for argument in sorted(arguments, key=len, reverse=True):
        for secret in (argument, argument.partition("=")[2]):
            if len(secret) > 3:
                text = text.replace(secret, "...")
    text = re.sub(r"(https?://)(?:[^\s/@]*@)?([^\s/?#'\"]*)[^\s'\"]*", r"\1\2/...", text)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[-300:]
