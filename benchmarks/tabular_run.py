"""One run of the pipeline on a CSV, started like a user does, and its results: for `tabular_default.py`."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tabular_sets import Array, DataSet

TIMEOUT_SECS = 7_200


@dataclasses.dataclass(frozen=True)
class Run:
    """A run."""

    root: pathlib.Path  # Its folder
    exit_code: int  # Exit code of the process
    record: dict[str, Any]  # Content of `runs/<id>.json`; empty if there is none
    secs: float  # Wall time of the process
    last_lines: str  # Last lines of stderr

    @property
    def status(self) -> str:
        """The status, with the reason if nothing was pushed."""
        status = self.record.get("status", f"exit code {self.exit_code}")
        reason = self.record.get("reason") or (self.last_lines if not self.record else "")
        return f"{status}: {reason}" if reason else str(status)

    @property
    def model(self) -> str:
        """The models that the run has chosen; `-` if its record does not name them."""
        return "+".join(item["model"] for item in self.record.get("models", ()) if item["is_chosen"]) or "-"

    @property
    def component_secs(self) -> dict[str, float]:
        """Wall time by component; the rest of the time is spent on imports, profile and report."""
        secs = {item["name"]: item["elapsed_secs"] for item in self.record.get("components", ())}
        return {**secs, "rest": self.secs - sum(secs.values())}


def run(
    data: DataSet,
    path: pathlib.Path,
    root: pathlib.Path,
    project: pathlib.Path,
    settings: tuple[str, ...] = (),
) -> Run:
    """Runs `python -m pipelines run` of the sources in `project`; a root with a record is only read."""
    timing = root / "benchmark.json"
    if not timing.is_file():
        root.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pipelines", "run", "--data", str(path)]
        command += ["--label", data.label, "--root", str(root)]
        for setting in (*data.settings, *settings):
            command += ["--set", setting]
        log = root / "benchmark.log"
        start = time.monotonic()
        with log.open("w") as stderr:
            process = subprocess.run(
                command,
                cwd=project,
                env={**os.environ, "PYTHONPATH": str(project), "TF_CPP_MIN_LOG_LEVEL": "2"},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                timeout=TIMEOUT_SECS,
                check=False,
            )
        secs = time.monotonic() - start
        timing.write_text(json.dumps({"secs": secs, "exit_code": process.returncode}))
    measured = json.loads(timing.read_text())
    records = sorted((root / "runs").glob("*.json"))
    return Run(
        root,
        measured["exit_code"],
        json.loads(records[-1].read_text()) if records else {},
        measured["secs"],
        " / ".join((root / "benchmark.log").read_text().splitlines()[-2:]),
    )


def serialized_split(root: pathlib.Path, split: str) -> list[bytes]:
    """Returns the serialized tf.Examples of CsvExampleGen's split `train` or `eval`."""
    import tensorflow as tf

    made = sorted(root.glob("artifacts/CsvExampleGen/*/examples"), key=lambda path: path.stat().st_mtime)
    if not made:
        return []
    files = sorted(map(str, made[-1].glob(f"Split-{split}/*")))
    return list(tf.data.TFRecordDataset(files, compression_type="GZIP").as_numpy_iterator())


def read_rows(serialized: list[bytes]) -> pd.DataFrame:
    """Returns the raw cells of tf.Examples, by column: numbers, or words; NaN for a missing one."""
    import tensorflow as tf

    columns: dict[str, list[Any]] = {}
    types: dict[str, str] = {}
    for number, example in enumerate(serialized):
        for name, feature in tf.train.Example.FromString(example).features.feature.items():
            kind = feature.WhichOneof("kind")
            types[name] = kind or types.get(name, "float_list")
            values = getattr(feature, kind).value if kind else ()
            cell: Any = np.nan
            if values:
                cell = values[0].decode() if kind == "bytes_list" else values[0]
            if name not in columns:
                columns[name] = [np.nan] * number
            columns[name].append(cell)
    table = pd.DataFrame(columns)
    for name, kind in types.items():
        if kind == "float_list":
            # Cells are kept as float32; values written with few digits are restored.
            table[name] = table[name].astype("float32").astype(str).astype("float64")
    return table


def predict(data: DataSet, root: pathlib.Path, serialized: list[bytes]) -> tuple[Array, list[str]] | None:
    """Returns the predictions of the run's serving model for raw tf.Examples; None without a model.

    They are probabilities `[rows, classes]` with the names of the classes, or numbers `[rows]` without.
    """
    import tensorflow as tf

    models = sorted(root.glob("artifacts/Trainer/*/model/Format-Serving/**/saved_model.pb"))
    if not models:
        return None
    model = tf.saved_model.load(str(models[-1].parent))
    signature = model.signatures["predict"]
    (name,) = signature.structured_input_signature[1]
    key = "predictions" if data.problem == "regression" else "probabilities"
    answers, classes = [], []
    for start in range(0, len(serialized), 10_000):
        outputs = signature(**{name: tf.constant(serialized[start : start + 10_000])})
        answers.append(outputs[key].numpy())
        if key == "probabilities":
            classes = [word.decode() for word in outputs["all_classes"][0].numpy()]
    predicted = np.concatenate(answers).astype(float)
    return (predicted, classes) if classes else (predicted[:, 0], [])
