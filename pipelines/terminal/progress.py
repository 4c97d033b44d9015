"""Shows a run on the terminal: components, training, evaluation, messages."""

import logging
import os
import re
import sys
import time
from collections.abc import Iterable
from typing import Any, Protocol, TextIO

from pipelines.terminal.streams import open_text

_LOSS = re.compile(r"^loss = (?P<loss>[-+.\deEnaif]+), step = (?P<step>\d+)")
_SPEED = re.compile(r"^global_step/sec: (?P<speed>[.\deE+-]+)")
_EVALUATION = re.compile(r"^Saving dict for global step (?P<step>\d+): (?P<metrics>.+)")
_RESTORED = re.compile(r"^Restoring parameters from .*-(?P<step>\d+)$")
_CANDIDATE = re.compile(
    r"^Training (?P<model>\w+(?: on fold \d+ of \d+)?): (?:\d+ of )?(?P<steps>\d+) steps at most"
)
_TRIAL = re.compile(r"^Trial (?P<trial>\d+) of (?P<trials>\d+): ")
_TREES = re.compile(r"^Steps of a tree: (?P<steps>\d+)")
_TRAINED = re.compile(r"^Trained (?P<outcome>.+)")
_LOSSES = ("average_loss", "loss")
_METRICS = ("auc", "accuracy")
_NAMES = {"binary_accuracy": "accuracy", "sparse_categorical_accuracy": "accuracy"}
"""Names of heads for metrics of TFMA, where they differ."""

_OF_NO_MODEL = ("accuracy_baseline", "global_step", "label/mean", "prediction/mean")
_MAX_OTHERS = 3
_LOGGERS = (
    "estimator_core",
    "tensorflow",
    "components.trainer.task_logs",
    "components.tuner.executor",
    "components.tuner.parallel",
    "pipelines.tabular.model_selection",
    "pipelines.tabular.training",
)


def evaluation_in_words(text: str, thresholds: Iterable[str] = ()) -> str:
    """Returns the metrics of an evaluation that decide on a model: its loss, and those of the gate.

    A head measures the AUC for two classes, and the accuracy for several. Of a model_fn that measures
    neither, it is up to three of its metrics. All others are in the log.

    `text`: metrics as the Estimator logs them, such as `auc = 0.9, loss = 0.2`.
    """
    metrics_by_name: dict[str, str] = {}
    for part in text.split(", "):
        name, is_metric, value = part.partition(" = ")
        if is_metric:
            metrics_by_name[name] = value
    first = [name for name in _LOSSES if name in metrics_by_name][:1]
    metrics = [name for name in _METRICS if name in metrics_by_name][:1]
    others = [name for name in metrics_by_name if name not in (*_LOSSES, *_OF_NO_MODEL)][:_MAX_OTHERS]
    configured = [
        name for threshold in thresholds if (name := _NAMES.get(threshold, threshold)) in metrics_by_name
    ]
    names = dict.fromkeys((*first, *(metrics or others), *configured))
    return ", ".join(f"{name} {_short(metrics_by_name[name])}" for name in names)


def _short(value: str) -> str:
    """Returns a number with five digits; other text as it is."""
    try:
        return f"{float(value):.5g}"
    except ValueError:
        return value


class Display(Protocol):
    width: int | None  # Characters of a line; None without a limit

    def line(self, text: str) -> None:
        """Shows a line that stays."""

    def activity(self, text: str) -> None:
        """Shows the current activity; it may be left out or replaced by the next one."""

    def close(self) -> None:
        """Ends the display."""


class PlainDisplay:
    """Plain lines, for log files and pipes.

    `secs_between_activities`: minimum time between two activities; those that come sooner are left out.
    """

    width: int | None = None

    def __init__(self, stream: TextIO, secs_between_activities: float = 2.0):
        self._stream = stream
        self._interval_secs = secs_between_activities
        self._last_secs = float("-inf")

    def line(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def activity(self, text: str) -> None:
        """Prints it unless another activity was printed just before."""
        now = time.monotonic()
        if now - self._last_secs >= self._interval_secs:
            self._last_secs = now
            self.line(f"    {text}")

    def close(self) -> None:
        """Does nothing."""


class LiveDisplay:
    """Lines above a status line with a spinner, for terminals."""

    def __init__(self, stream: TextIO):
        from rich.console import Console

        self._console = Console(file=stream, highlight=False)
        self.width: int | None = self._console.width
        self._status: Any = self._console.status("starting")
        self._status.start()

    def line(self, text: str) -> None:
        """Prints the line above the status line."""
        from rich.text import Text

        mark, _, rest = text.partition(" ")
        color = {"✓": "green", "=": "cyan", "✗": "red", "!": "yellow", "i": "blue"}.get(mark)
        shown = Text.assemble((mark, f"bold {color}"), " ", rest) if color else Text(text)
        self._console.print(shown)

    def activity(self, text: str) -> None:
        """Replaces the status line."""
        from rich.markup import escape

        self._status.update(escape(text))

    def close(self) -> None:
        """Removes the status line."""
        self._status.stop()


def make_display(stream: TextIO) -> Display:
    return LiveDisplay(stream) if stream.isatty() else PlainDisplay(stream)


def terminal_stream() -> TextIO:
    """Returns a stream to the present stderr that remains when the descriptor is redirected."""
    return open_text(os.dup(sys.stderr.fileno()), sys.stderr.encoding)


class Progress(logging.Handler):
    """Turns runner events and the Estimator's log records into display lines."""

    def __init__(self, display: Display, max_steps: int | None = None):
        super().__init__(logging.INFO)
        self.display = display
        self.max_steps = max_steps
        self.thresholds: tuple[str, ...] = ()
        self._component = ""
        self._trains = False
        self._speed = ""
        self._has_trained = False
        self._candidate = ""
        self._steps_per_tree = 0  # of a model that has no trees

    def __enter__(self) -> "Progress":
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self)
        return self

    def __exit__(self, *unused: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)

    def component_started(self, component: str, trains: bool = False) -> None:
        self._component = component
        self._trains = trains
        self._has_trained = False
        self._steps_per_tree, self._speed = 0, ""
        self.display.activity(f"{component} ...")

    def component_finished(self, component: str, cached: bool, elapsed_secs: float, reason: str = "") -> None:
        """Shows that a component is done, reused or not, and why."""
        if cached:
            why = f": {reason}" if reason else ""
            self.display.line(f"= {component}  unchanged, reused{why}")
        else:
            why = f"  ({reason})" if reason else ""
            self.display.line(f"✓ {component}  {elapsed_secs:.1f} s{why}")

    def component_failed(self, component: str, elapsed_secs: float) -> None:
        self.display.line(f"✗ {component}  after {elapsed_secs:.1f} s")

    def emit(self, record: logging.LogRecord) -> None:
        """Shows training and evaluation as the Estimator logs them."""
        message = record.getMessage()
        if match := _CANDIDATE.match(message):
            self._candidate, self.max_steps = match["model"], int(match["steps"])
            self._has_trained = False
        elif match := _TRIAL.match(message):
            self._candidate, self.max_steps = f"trial {match['trial']} of {match['trials']}", None
            self._has_trained = False
        elif match := _TREES.match(message):
            self._steps_per_tree, self._speed = int(match["steps"]), ""
        elif match := _TRAINED.match(message):
            self.display.line(f"    {match['outcome']}")
            # What follows, such as the best model's training on all rows, counts its own steps.
            self._candidate, self._has_trained, self.max_steps = "", True, None
        elif match := _LOSS.match(message):
            self._has_trained = True
            speed = f", {self._speed}" if self._speed else ""
            what = f"{self._component}  {self._candidate}".rstrip()
            self.display.activity(
                f"{what}  {self._place(match['step'], self.max_steps)}, loss {match['loss']}{speed}"
            )
        elif match := _SPEED.match(message):
            unit = "trees" if self._steps_per_tree else "steps"
            self._speed = f"{float(match['speed']) / (self._steps_per_tree or 1):.0f} {unit}/s"
        elif match := _EVALUATION.match(message):
            # One of several models has many evaluations; its last line reports the best of them.
            metrics = evaluation_in_words(match["metrics"], self.thresholds)
            text = f"evaluation at {self._place(match['step'])}: {metrics}"
            if self._candidate:
                self.display.activity(f"{self._component}  {self._candidate}  {text}")
            else:
                self.display.line(f"    {text}")
        elif match := _RESTORED.match(message):
            # Later restores are for evaluations and exports of the trained model.
            if self._trains and not self._has_trained:
                self._has_trained = True
                self.display.line(f"    continues from the checkpoint of {self._place(match['step'])}")

    def _place(self, step: str, max_steps: int | None = None) -> str:
        """Returns a step of a training as text; of trees, which have several steps each, the tree."""
        unit, divisor = ("tree", self._steps_per_tree) if self._steps_per_tree else ("step", 1)
        total = f"/{max_steps // divisor}" if max_steps else ""
        return f"{unit} {int(step) // divisor}{total}"
