"""Where training happens until it is done: in a folder that outlives an execution that was killed."""

import logging
import os
import shutil
from pathlib import Path

from tfx.dsl.io import fileio

_logger = logging.getLogger(__name__)

UNFINISHED_DIR = "unfinished"
_HANDED_OVER = "handed-over"


def working_directory(model_runs: str, run_id: str, identity: str) -> str:
    """Returns the folder to train in; it exists, with what the same training has left there.

    Args:
        model_runs: Folder of the output `model_run`, with a folder of each execution.
        run_id: Of the pipeline.
        identity: Hash of all that the training depends on: with another one it starts anew.
    """
    folder = os.path.join(model_runs, UNFINISHED_DIR, f"{run_id}-{identity}")
    handed_over = os.path.join(model_runs, UNFINISHED_DIR, f"{run_id}-{_HANDED_OVER}")
    if not fileio.exists(folder) and fileio.exists(handed_over):
        fileio.rename(handed_over, folder)
    if fileio.exists(folder):
        _logger.info("Continuing the unfinished training in %s", folder)
    fileio.makedirs(folder)
    return folder


def finish(folder: str, model_run: str) -> None:
    """Moves a finished training to the output of its execution.

    Args:
        folder: Of `working_directory`, or `model_run` itself.
        model_run: Folder of the output.
    """
    if folder == model_run:
        return
    if fileio.exists(model_run):  # TFX makes output directories beforehand.
        fileio.rmtree(model_run)
    fileio.rename(folder, model_run)
    parent = os.path.dirname(folder)
    if not fileio.listdir(parent):
        fileio.rmtree(parent)


def hand_over(model_runs: Path, former_id: str, run_id: str) -> None:
    """Lets a run go on with what the newest training of a run has left, whatever it depended on.

    Args:
        model_runs: Folder of the output `model_run`.
        former_id: Of the run that trained.
        run_id: Of the run that goes on; it can be the same.
    """
    handed_over = model_runs / UNFINISHED_DIR / f"{run_id}-{_HANDED_OVER}"
    left = [path for path in handed_over.parent.glob(f"{former_id}-*") if path != handed_over]
    if left:
        shutil.rmtree(handed_over, ignore_errors=True)
        max(left, key=lambda path: path.stat().st_mtime).rename(handed_over)


def hand_over_copy(model_run: Path, run_id: str) -> None:
    """Lets a run go on with a training that was done.

    Args:
        model_run: Output of its execution.
        run_id: Of the run that goes on.
    """
    handed_over = model_run.parent / UNFINISHED_DIR / f"{run_id}-{_HANDED_OVER}"
    shutil.rmtree(handed_over, ignore_errors=True)
    shutil.copytree(model_run, handed_over)
