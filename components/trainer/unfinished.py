"""Folders of unfinished training, which outlive a killed execution."""

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfx.dsl.io import fileio
from tfx.types.artifact import Artifact

from components.file_systems import relative_path, remove_tree

_LOGGER = logging.getLogger(__name__)

UNFINISHED_DIR = "unfinished"
_HANDED_OVER = "handed-over"


def identity(
    input_dict: Mapping[str, Sequence[Artifact]], exec_properties: Mapping[str, Any], parent: str
) -> str:
    """Returns the hash of everything that an execution depends on."""
    inputs = {
        key: [relative_path(artifact.uri, parent) for artifact in artifacts]
        for key, artifacts in input_dict.items()
    }
    text = json.dumps([inputs, exec_properties], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def working_directory(model_runs: str, run_id: str, identity: str) -> str:
    """Returns the folder to train in; it exists, and keeps the files of an earlier attempt."""
    folder = os.path.join(model_runs, UNFINISHED_DIR, f"{run_id}-{identity}")
    handed_over = os.path.join(model_runs, UNFINISHED_DIR, f"{run_id}-{_HANDED_OVER}")
    if not fileio.exists(folder) and fileio.exists(handed_over):
        fileio.rename(handed_over, folder)
    if fileio.exists(folder):
        _LOGGER.info("Continuing the unfinished training in %s", folder)
    fileio.makedirs(folder)
    return folder


def finish(folder: str, model_run: str) -> None:
    """Moves a finished training from the folder of `working_directory` to the output of its execution."""
    if folder == model_run:
        return
    if fileio.exists(model_run):  # TFX creates output directories in advance
        remove_tree(model_run)
    fileio.rename(folder, model_run)
    parent = os.path.dirname(folder)
    if not fileio.listdir(parent):
        remove_tree(parent)


def training_run_id(folder: Path) -> str | None:
    """Returns the id of the pipeline run that trains in a folder; None if the folder is not a training."""
    match = re.fullmatch(rf"(.+)-(?:[0-9a-f]+|{_HANDED_OVER})", folder.name)
    return match[1] if match else None


def unfinished_training(component: Path, run_id: str) -> Path | None:
    """Returns the folder of the newest unfinished training of a run among the Trainer's artifacts, if any."""
    folders = [
        folder for folder in component.glob(f"*/{UNFINISHED_DIR}/*") if training_run_id(folder) == run_id
    ]

    def last_change(folder: Path) -> float:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))

    return max(folders, key=last_change, default=None)


def trained_step(folder: Path) -> int | None:
    """Returns the step of the newest checkpoint below a folder, if any."""
    states = [path for path in folder.rglob("checkpoint") if path.is_file()]
    named = (re.search(r'^model_checkpoint_path: ".*-(\d+)"', s.read_text(), re.M) for s in states)
    return max((int(match[1]) for match in named if match), default=None)


def hand_over(training: Path, model_runs: Path, run_id: str, *, other_code: bool) -> None:
    """Lets a run continue a training, even if the training's code or settings were different.

    An unfinished training is moved, a finished one is copied.
    """
    trainings = model_runs / UNFINISHED_DIR
    trainings.mkdir(parents=True, exist_ok=True)
    handed_over = trainings / f"{run_id}-{_HANDED_OVER}"
    if training.parent.name != UNFINISHED_DIR:
        partial = trainings / f".{run_id}.partial"  # an incomplete copy is never read as a training
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(training, partial)
        training = partial
    if other_code:
        for state in list(training.rglob("checkpoint")):
            shutil.rmtree(state.parent / "export", ignore_errors=True)
            for best in state.parent.glob("best_eval_result.*.json"):
                best.unlink()
    if training != handed_over:
        shutil.rmtree(handed_over, ignore_errors=True)
        training.rename(handed_over)
