"""Makes the plan of a run: the request, checked against the data. Nothing is written yet."""

from collections.abc import Iterator

from components.user import source as user_source
from pipelines.beam.options import engine_name
from pipelines.config.pipeline_config import WITHOUT_EFFECT_ON_RESULT, PipelineConfig
from pipelines.config.toml import columns_entry, flat_settings, toml_text
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import continued_runs
from pipelines.root.records import RunRecord
from pipelines.root.schema.root_schema import RootSchema, SchemaOrigin
from pipelines.root.served_run import serving_run
from pipelines.runs.definitions.fingerprints import code_definitions, code_fingerprint, model_fingerprint
from pipelines.runs.definitions.model_code import ModelCode
from pipelines.runs.definitions.run_plan import DataPlan, RunPlan
from pipelines.runs.plan.data_plan import LEAK_PREFIX, plan_data
from pipelines.runs.plan.inputs import RunInputs, RunRequest, read_inputs
from pipelines.terminal.progress import Display

_SHOWN = 3  # changed definitions in a message


def plan_run(request: RunRequest, display: Display, inputs: RunInputs | None = None) -> RunPlan:
    inputs = inputs or read_inputs(request, display)
    root, config, data = inputs.root, inputs.config, inputs.data
    root_schema, unfinished = inputs.root_schema, inputs.unfinished
    profile = data.profile
    if config.module is not None:
        display.activity(f"loading {config.module.path or config.module.file}")
    learned = plan_data(config, data)
    code = learned.code
    continued: tuple[RunRecord, ...] = ()
    if unfinished is not None:
        _check_same_run(unfinished, config, profile)
        _check_same_schema(unfinished, root_schema)
        where = config.module and (config.module.path or config.module.file)
        where = where or "the generic model"
        records = (unfinished, *continued_runs(root, unfinished))
        if touches_training(root, records, code, where, request.force):
            unfinished, continued = None, records
        else:
            continued = records[1:]
    findings = (*learned.findings, *_changed_positive_class(root, code))
    if request.runner == "local" and config.beam.has_engine:
        findings += (
            f"--runner local runs Beam in its own process; to use {engine_name(config.beam)}, as in [beam], "
            "give --runner beam",
        )
    return RunPlan(
        **{**vars(learned), "profile": profile.without_cells(), "findings": findings},
        root=root,
        config=config,
        enable_cache=request.enable_cache,
        unfinished=unfinished,
        continued=continued,
        root_schema=root_schema,
        scheduled_by=request.scheduled_by,
        model_fingerprint=_fingerprint(config, learned) if not continued else "",
        doubts=tuple(_doubts(root, learned)),
    )


def _doubts(root: Root, learned: DataPlan) -> Iterator[str]:
    """Yields a doubt for each column that predicts the label on its own.

    A column that `[columns]` names is known to the user, and one that the served model reads was
    approved with it.
    """
    served = serving_run(root)
    for leak in learned.leaks:
        start = f"{LEAK_PREFIX}column {leak.column!r} "
        was_there = served is not None and any(note.startswith(start) for note in served.notes)
        if not learned.kinds[leak.column].is_given and not was_there:
            kind = learned.kinds[leak.column].name
            use = "category" if kind == "boolean" else kind
            yield (
                f"{leak.evidence}: this may be target leakage. If it is not known at prediction time, leave "
                f"it out: {columns_entry(leak.column, 'ignore')}; if it is, accept it: "
                f"{columns_entry(leak.column, use)}"
            )


def _changed_positive_class(root: Root, code: ModelCode) -> Iterator[str]:
    """Yields a warning if the positive class of two is not that of the served model."""
    served = serving_run(root)
    evaluation = (served and root.details(served.run_id).read("evaluation")) or {}
    classes = evaluation.get("plots", {}).get("classes", ())
    if code.plan and len(classes) == 2 and (*classes[::-1],) == code.plan.label.classes:
        before, now = classes[::-1]
        yield (
            f"the positive class is {now!r}, but {before!r} in the live version. Precision, recall and your "
            f"thresholds now describe {now!r}, and clients get `class_ids`, `logistic` and scores in the "
            f"other order. To keep {before!r}, set data.positive = {toml_text(before)}"
        )


def _fingerprint(config: PipelineConfig, learned: DataPlan) -> str:
    overrides = learned.type_overrides
    kept_text = tuple(name for name in overrides.text if name not in learned.text_columns)
    types = (kept_text, overrides.floats)
    return model_fingerprint(config, learned.code, learned.profile.digests, learned.schema, types)


def check_same_root_schema(plan: RunPlan) -> None:
    """Checks that the root's schema has not changed since the plan was made."""
    if plan.schema is not None:
        return
    schema_now = plan.root.schema.read()
    if schema_now != plan.root_schema:
        raise BadInputError(
            f"The schema of {plan.root} was changed while the data were read. Run again, to check "
            "them against the new schema."
        )


def _check_same_run(unfinished: RunRecord, config: PipelineConfig, profile: CsvProfile) -> None:
    advice = "Start a new run without --resume; unchanged components are reused anyway"
    advice += "." if unfinished.mended is None else ", but not a training with two versions of the code."
    recorded_config = unfinished.validated_config()  # with defaults for settings added since
    before, now = (
        flat_settings(settings_of_run.model_dump(mode="json", exclude=set(WITHOUT_EFFECT_ON_RESULT)))
        for settings_of_run in (recorded_config, config)
    )
    for key in dict.fromkeys((*before, *now)):
        if now.get(key) != before.get(key):
            raise BadInputError(
                f"--resume: run {unfinished.run_id} was started with {key} = {before.get(key)!r}; "
                f"received {now.get(key)!r}. {advice}"
            )
    if profile.fingerprint != unfinished.data_fingerprint:
        raise BadInputError(
            f"--resume: the data in {config.data.path} have changed since run {unfinished.run_id} "
            f"started. {advice}"
        )


def _was_accepted_since(origin: SchemaOrigin, run: RunRecord) -> bool:
    if origin.newest_number and run.number:
        return origin.newest_number >= run.number
    return origin.written >= run.started  # one of them is of an earlier version of this program


def _check_same_schema(unfinished: RunRecord, root_schema: RootSchema | None) -> None:
    """Checks that an unfinished run does not depend on a validation that no longer counts."""
    advice = "Start a new run without --resume; unchanged components are reused anyway."
    origin = root_schema.origin if root_schema else None
    if origin and origin.accepted_for is not None and _was_accepted_since(origin, unfinished):
        raise BadInputError(
            f"--resume: the schema of run {origin.run_id} was accepted since run {unfinished.run_id} "
            f"started. {advice}"
        )
    if (
        unfinished.is_bad_input
        and unfinished.components[-1:]
        and (unfinished.components[-1].name == "ExampleValidator")
    ):
        raise BadInputError(
            f"--resume: run {unfinished.run_id} ended because of its data, and would again. {advice}"
        )


def touches_training(
    root: Root, records: tuple[RunRecord, ...], code: ModelCode, where: str, force: bool
) -> bool:
    """Returns whether the changed code is used by the run that is to be resumed."""
    record = records[0]
    if code_fingerprint(code) == record.code_fingerprint:
        return False
    definitions, before = code_definitions(code), record.code_definitions
    now = {name: definition.digest for name, definition in definitions.items()}
    # None are known if the run did not record its code.
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    changed = changed if before else []
    # Removed definitions may have been used by Transform or the Trainer, too.
    module = code.preprocessing_fn.rpartition(".")[0]
    trainer = code.trainer_path or f"{module}.{code.trainer}"
    reachable = user_source.reached(definitions, (code.preprocessing_fn, trainer))
    used = [name for name in changed if name in reachable or name not in definitions]
    if changed and not used:
        return False
    if force:
        return True
    named = ", ".join(used[:_SHOWN]) + (" ..." if len(used) > _SHOWN else "")
    step = trained_step(root, records)
    reached = f", which has reached step {step}," if step else ""
    raise BadInputError(
        f"--resume: the code of {where} has changed since run {record.run_id} "
        f"started{f' ({named})' if named else ''}. --resume=force keeps Transform's output of the old code, "
        f"and continues the training{reached} with the new code. Without --resume, a new run trains from the "
        "start."
    )


def trained_step(root: Root, records: tuple[RunRecord, ...]) -> int | None:
    """Returns the last step of an unfinished training of these runs, or None."""
    from components.trainer import unfinished

    for record in records:
        folder = unfinished.unfinished_training(root.artifacts / "Trainer", record.run_id)
        step = unfinished.trained_step(folder) if folder else None
        if step:
            return step
    return None
