"""Decides whether a run can be resumed although the code of the model has changed."""

from components.user import source as user_source
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.runs.definitions.fingerprints import code_definitions, code_fingerprint
from pipelines.runs.definitions.model_code import ModelCode

_SHOWN = 3


def touches_training(
    root: Root, records: tuple[RunRecord, ...], code: ModelCode, where: str, force: bool
) -> bool:
    """Returns whether the changed code is used by the run that is to be resumed."""
    record = records[0]
    if code_fingerprint(code) == record.code_fingerprint:
        return False
    changed = _changed_definitions(record, code)
    used = _used(changed, code)
    if changed and not used:
        return False
    if force:
        return True
    named = ", ".join(used[:_SHOWN]) + (" ..." if len(used) > _SHOWN else "")
    step = trained_step(root, records)
    reached = f", which has reached step {step}" if step else ""
    raise BadInputError(
        f"--resume: the code of {where} has changed since run {record.run_id} started"
        f"{f' ({named})' if named else ''}. --resume=force keeps what Transform has made with the old "
        f"code, and goes on with the training{reached}, under the new code. Without --resume a new "
        "run begins, and trains from the start."
    )


def trained_step(root: Root, records: tuple[RunRecord, ...]) -> int | None:
    """Returns the last step of an unfinished training of these runs, None without one."""
    from components.trainer import unfinished

    for record in records:
        folder = unfinished.unfinished_training(root.artifacts / "Trainer", record.run_id)
        step = unfinished.trained_step(folder) if folder else None
        if step:
            return step
    return None


def _changed_definitions(record: RunRecord, code: ModelCode) -> list[str]:
    """Returns the added, changed and removed definitions; none if the run did not record its code."""
    before = record.code_definitions
    now = {name: definition.digest for name, definition in code_definitions(code).items()}
    return [
        name for name in sorted({*before, *now}) if before and before.get(name) != now.get(name)
    ]


def _used(changed: list[str], code: ModelCode) -> list[str]:
    """Returns the definitions that Transform or the Trainer may use, including removed ones."""
    definitions = code_definitions(code)
    module = code.preprocessing_fn.rpartition(".")[0]
    trainer = code.trainer_path or f"{module}.{code.trainer}"
    reached = user_source.reached(definitions, (code.preprocessing_fn, trainer))
    return [name for name in changed if name in reached or name not in definitions]
