"""A run that goes on though the code of the model was changed since it began."""

import re
from enum import Enum, auto
from pathlib import Path

from components import user_source
from components.trainer import unfinished
from pipelines.errors import BadInputError
from pipelines.fingerprints import code_definitions, code_fingerprint
from pipelines.model_code import ModelCode
from pipelines.run_record import RunRecord

_SHOWN = 3


class CodeChange(Enum):
    """What has become of the code since a run began.

    Attributes:
      NONE: Nothing.
      UNUSED: Transform and Trainer cannot reach what has changed.
      FORCED: They can, and the user wants to go on all the same.
    """

    NONE = auto()
    UNUSED = auto()
    FORCED = auto()


def code_change(
    root: Path, record: RunRecord, code: ModelCode, where: str, force: bool
) -> CodeChange:
    """Returns what has become of the code since a run began that is to go on.

    Args:
      root: Of the pipeline.
      record: Of the run.
      code: As it is now.
      where: The name of the code, for the error.
      force: Whether to go on in any case.

    Raises:
      BadInputError: The change may touch what the run has finished. It says what would be lost.
    """
    if code_fingerprint(code) == record.code_fingerprint:
        return CodeChange.NONE
    if force:
        return CodeChange.FORCED
    changed = _changed_definitions(record, code)
    if changed and not _is_used(changed, code):
        return CodeChange.UNUSED
    named = ", ".join(changed[:_SHOWN]) + (" ..." if len(changed) > _SHOWN else "")
    finished = [part.name for part in record.components if part.status != "failed"]
    made = f"what {', '.join(finished)} made with the old code" if finished else "that run"
    step = trained_step(root, record.run_id)
    training = f" and goes on with its training, at step {step}," if step else " and goes on"
    raise BadInputError(
        f"--resume: the code of {where} has changed since run {record.run_id} started"
        f"{f' ({named})' if named else ''}. --resume=force keeps {made}{training} with the new "
        "code. A run without --resume begins anew: components that the change does not touch are "
        "reused, but the training of that run is removed."
    )


def _changed_definitions(record: RunRecord, code: ModelCode) -> tuple[str, ...]:
    """Returns what was added, changed or removed; empty if the run did not record its code."""
    before = record.code_definitions
    now = {name: definition.digest for name, definition in code_definitions(code).items()}
    return tuple(
        name for name in sorted({*before, *now}) if before and before.get(name) != now.get(name)
    )


def _is_used(changed: tuple[str, ...], code: ModelCode) -> bool:
    """Returns whether Transform or the Trainer can reach any of the changed definitions."""
    functions = (code.preprocessing_fn.rpartition(".")[2], code.trainer)
    return bool(user_source.reached(code_definitions(code), functions).intersection(changed))


def trained_step(root: Path, run_id: str) -> int | None:
    """Returns the step of the newest checkpoint of a run whose training has not become an output."""
    states = root.glob(f"artifacts/*/*/{unfinished.UNFINISHED_DIR}/{run_id}-*/**/checkpoint")
    steps = [
        re.search(r'^model_checkpoint_path: ".*-(\d+)"', state.read_text(encoding="utf-8"), re.M)
        for state in states
        if state.is_file()
    ]
    return max((int(step[1]) for step in steps if step), default=None)


def hand_training_over(root: Path, run_id: str, finished: Path | None) -> None:
    """Lets the Trainer of a run go on with what its training has left, under whatever code.

    Args:
      root: Of the pipeline.
      run_id: Of the run.
      finished: The model run of a Trainer that is to run again; None when it did not finish.
    """
    if finished is not None:
        unfinished.hand_over(finished.parent, run_id, finished)
        return
    for folder in root.glob(f"artifacts/*/*/{unfinished.UNFINISHED_DIR}"):
        unfinished.hand_over(folder.parent, run_id)
