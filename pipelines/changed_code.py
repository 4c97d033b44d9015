"""A run that goes on though the code of the model was changed since it began."""

import re
from pathlib import Path

from components import user_source
from pipelines.errors import BadInputError
from pipelines.fingerprints import code_definitions, code_fingerprint
from pipelines.model_code import ModelCode
from pipelines.run_record import RunRecord

_SHOWN = 3


def touches_training(
    root: Path, record: RunRecord, code: ModelCode, where: str, force: bool
) -> bool:
    """Returns whether the code has changed where a run uses it that is to go on.

    Args:
      root: Of the pipeline.
      record: Of the run.
      code: As it is now.
      where: The name of the code, for the error.
      force: Whether to go on in that case.

    Raises:
      BadInputError: It has, and `force` is not given. The message says what would be lost.
    """
    if code_fingerprint(code) == record.code_fingerprint:
        return False
    changed = _changed_definitions(record, code)
    if changed and not _is_used(changed, code):
        return False
    if force:
        return True
    named = ", ".join(changed[:_SHOWN]) + (" ..." if len(changed) > _SHOWN else "")
    step = trained_step(root, record.run_id)
    training = f"its training, at step {step}" if step else "the rest"
    raise BadInputError(
        f"--resume: the code of {where} has changed since run {record.run_id} started"
        f"{f' ({named})' if named else ''}. --resume=force keeps what the old code has made, and "
        f"goes on with {training}, with the new code. A run without --resume begins anew: components "
        "that the change does not touch are reused, but the training of that run is removed."
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
    from components.trainer import unfinished

    states = root.glob(f"artifacts/*/*/{unfinished.UNFINISHED_DIR}/{run_id}-*/**/checkpoint")
    steps = [
        re.search(r'^model_checkpoint_path: ".*-(\d+)"', state.read_text(encoding="utf-8"), re.M)
        for state in states
        if state.is_file()
    ]
    return max((int(step[1]) for step in steps if step), default=None)


def hand_training_over(
    root: Path, former_id: str, run_id: str, finished: Path | None = None
) -> None:
    """Lets the Trainer of a run go on with what a training has left, under whatever code.

    Args:
      root: Of the pipeline.
      former_id: Of the run that trained.
      run_id: Of the run that goes on; it can be the same.
      finished: The output `model_run`, when the training was done; it is copied.
    """
    from components.trainer import unfinished

    if finished is not None:
        unfinished.hand_over_copy(finished, run_id)
        return
    for folder in root.glob(f"artifacts/*/*/{unfinished.UNFINISHED_DIR}"):
        unfinished.hand_over(folder.parent, former_id, run_id)
