"""The middle part of a run: the components, by a runner, and what they have come to."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.anomalies import NOTE_PREFIX, read_anomalies
from pipelines.changed_data import changed_data_note
from pipelines.checks import check_records
from pipelines.data.staging import stage
from pipelines.errors import RunFailedError
from pipelines.evaluation import merge_thresholds
from pipelines.fingerprints import Fingerprints, component_fingerprints
from pipelines.label_distribution import compare_labels, read_labels
from pipelines.progress import Progress
from pipelines.root_schema import prepare_root_schema, schema_file, settle_root_schema
from pipelines.run_history import run_of_version
from pipelines.run_plan import RunPlan
from pipelines.run_record import ComponentRecord, Metrics, RunOutcome
from pipelines.run_recorder import RunRecorder
from pipelines.runners import Runner
from pipelines.schema_file import parse_schema, read_bytes
from pipelines.schema_of_run import schema_to_keep
from pipelines.serving import version_state
from pipelines.split_sizes import count_examples
from pipelines.tabular.column_table import table_lines

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

    from pipelines.definitions.csv_to_serving import CsvToServing
    from pipelines.runners.component_launcher import ComponentLauncher


def execute(plan: RunPlan, runner: Runner, recorder: RunRecorder, progress: Progress) -> RunOutcome:
    """Runs the components of a plan.

    Args:
      plan: What to do.
      runner: Runs the components.
      recorder: Records what has run.
      progress: Shows what runs.

    Raises:
      RunFailedError: A component failed.
    """
    for line in table_lines(plan.columns):
        progress.display.line(f"  {line}")
    of_model = plan.code.plan.notes() if plan.code.plan else ()
    for note in (*plan.findings, *plan.profile.notes(), *of_model):
        recorder.note(note)
    progress.display.activity("loading TFX ...")
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from pipelines.leftovers import tidy_root
    from pipelines.runners.component_launcher import ComponentLauncher

    run_id = recorder.record.run_id
    for lost in tidy_root(plan.root, run_id, *(former.run_id for former in plan.mended)):
        recorder.note(lost)
    settle_root_schema(plan.root, run_id)
    data = stage(plan.profile, plan.code.required_label, plan.root / "data", plan.splits)
    for reason in data.reasons:
        recorder.note(f"data: {reason} (copy in {data.folder})")
    (plan.root / "metadata").mkdir(exist_ok=True)
    pipeline = plan.define(data)
    schema = plan.schema.fingerprint if plan.schema else ""
    fingerprints = component_fingerprints(
        pipeline,
        run_id,
        plan.profile.fingerprint,
        plan.code,
        schema,
        mixes_code=bool(plan.mended),
        root_schema=plan.root_schema.fingerprint if plan.root_schema else "",
    )
    if kept := _kept_transform(plan, pipeline, fingerprints):
        fingerprints[pipeline.transform] = kept
    elif plan.mended:
        recorder.note("Transform has nothing that could be kept: it runs with the new code")
    with runner.beam_options(plan.config.beam, plan.root) as beam_options:
        launcher = ComponentLauncher(
            pipeline.pipeline,
            run_id,
            fingerprints,
            _Observer(pipeline, recorder, progress),
            checks={
                pipeline.example_gen: _LabelCheck(pipeline, plan, recorder),
                pipeline.statistics_gen: _check_splits,
                pipeline.schema_gen: _SchemaKeeping(plan, run_id),
                pipeline.example_validator: _AnomalyCheck(pipeline, plan, recorder),
                **({pipeline.trainer: _ModelRecording(recorder)} if _compares_models(plan) else {}),
                pipeline.evaluator: _VerdictRecording(plan, recorder),
            },
            beam_options=beam_options,
        )
        _go_on_with_training(plan, pipeline, run_id)
        runner.run(launcher)
    settle_root_schema(plan.root)
    return _outcome(plan, pipeline, launcher)


def _go_on_with_training(plan: RunPlan, pipeline: "CsvToServing", run_id: str) -> None:
    """Lets the Trainer go on with what the run, or one that it goes on with, has trained."""
    from components.trainer import unfinished
    from pipelines.metadata_store import metadata_file, open_store, output_of

    if not (plan.unfinished or plan.mended) or not metadata_file(plan.root).is_file():
        return
    store = open_store(plan.root)
    for former in filter(None, (plan.unfinished, *plan.mended)):
        finished = output_of(store, former.run_id, pipeline.trainer.type, "model_run")
        if finished and former.run_id == run_id:
            return
        training = finished or unfinished.unfinished_training(
            plan.root / "artifacts", former.run_id
        )
        if training:
            unfinished.hand_over(training, run_id, other_code=former.run_id != run_id)
            return


def _kept_transform(plan: RunPlan, pipeline: "CsvToServing", fingerprints: Fingerprints) -> str:
    """Returns the fingerprint of what Transform made in a run that this one goes on with.

    Empty if nothing was made there, or if it cannot be taken from the cache: then Transform runs.
    """
    from pipelines.metadata_store import fingerprints_of, metadata_file, open_store

    if not (plan.mended and plan.enable_cache and metadata_file(plan.root).is_file()):
        return ""
    # The plan has compared the data; ML Metadata has TFX's own fingerprint of CsvExampleGen's.
    upstream = (pipeline.statistics_gen, pipeline.schema_gen)
    store = open_store(plan.root)
    for former in plan.mended:
        made = fingerprints_of(store, former.run_id)
        kept = made.get(pipeline.transform.type)
        if kept is not None:
            is_same = all(made.get(part.type) == fingerprints[part] for part in upstream)
            return kept if is_same else ""
    return ""


class _Observer:
    """Shows and records the components."""

    def __init__(self, pipeline: "CsvToServing", recorder: RunRecorder, progress: Progress):
        self._pipeline = pipeline
        self._recorder = recorder
        self._progress = progress

    def component_started(self, component: "BaseNode") -> None:
        self._progress.component_started(component.id, trains=component is self._pipeline.trainer)

    def component_finished(self, component: "BaseNode", cached: bool, elapsed_secs: float) -> None:
        self._progress.component_finished(component.id, cached, elapsed_secs)
        self._recorder.add_component(
            ComponentRecord(component.id, "cached" if cached else "finished", elapsed_secs)
        )

    def component_failed(self, component: "BaseNode", elapsed_secs: float) -> None:
        self._progress.component_failed(component.id, elapsed_secs)
        self._recorder.add_component(ComponentRecord(component.id, "failed", elapsed_secs))


def _check_splits(outputs: Mapping[str, list[Any]]) -> None:
    """Checks that there are rows to train and to evaluate on."""
    for split, num_examples in count_examples(outputs["statistics"][0]).items():
        if not num_examples:
            raise RunFailedError(
                "CsvExampleGen",
                f"no row fell into the split {split!r}: the data have too few. More rows are needed "
                "to train and to evaluate",
                is_bad_input=True,
            )


class _LabelCheck:
    """Compares the label in the splits, and records it; ends the run if the configuration says so."""

    def __init__(self, pipeline: "CsvToServing", plan: RunPlan, recorder: RunRecorder):
        self._component = pipeline.example_gen
        self._plan = plan
        self._recorder = recorder

    def __call__(self, outputs: Mapping[str, list[Any]]) -> None:
        plan, label = self._plan, self._plan.config.data.label
        decimal = plan.code.plan.label.decimal if plan.code.plan else None
        found = compare_labels(read_labels(outputs["examples"][0], label, decimal))
        if found is None:
            return
        self._recorder.add_label_comparison(found.as_record(label))
        if not found.is_significant:
            return
        difference = f"the splits differ in the label: {found.describe(label)}"
        split = plan.config.split
        if not split.stops_at_label_difference:
            self._recorder.note(difference)
            return
        raise RunFailedError(
            self._component.id,
            f"{difference}. A model would be judged on other data than it is made for. Mend the "
            f'split (split.by = "{split.by}"), or go on with split.on_label_difference = "warn"',
            is_bad_input=True,
        )


class _SchemaKeeping:
    """Prepares the schema that becomes the root's with the push, if there is none yet."""

    def __init__(self, plan: RunPlan, run_id: str):
        self._plan = plan
        self._run_id = run_id

    def __call__(self, outputs: Mapping[str, list[Any]]) -> None:
        plan = self._plan
        if plan.schema is not None or schema_file(plan.root).exists():
            return
        label = plan.code.plan.label if plan.code.plan else None
        (file,) = Path(outputs["schema"][0].uri).glob("*.pbtxt")
        kinds = {column.name: column.kind for column in plan.columns}
        schema = schema_to_keep(
            parse_schema(read_bytes(file), str(file), ""),
            kinds,
            plan.config.data.label,
            label.classes if label else (),
            plan.moving_columns,
        )
        prepare_root_schema(plan.root, self._run_id, schema, map(vars, plan.columns))


class _AnomalyCheck:
    """Notes what the ExampleValidator found; ends the run if the configuration says so."""

    def __init__(self, pipeline: "CsvToServing", plan: RunPlan, recorder: RunRecorder):
        self._validator = pipeline.example_validator
        self._on_anomalies = plan.config.example_validator.on_anomalies
        self._has_own_schema = plan.schema is not None
        self._recorder = recorder

    def __call__(self, outputs: Mapping[str, list[Any]]) -> None:
        found = read_anomalies(outputs["anomalies"][0])
        for anomaly in found:
            self._recorder.note(f"{NOTE_PREFIX}{anomaly.text}")
        breaking = [anomaly for anomaly in found if anomaly.is_breaking]
        failing = {"warn": [], "fail": found, "fail_if_broken": breaking}[self._on_anomalies]
        if failing:
            accepting = (
                "go on with --set example_validator.on_anomalies=warn"
                if self._has_own_schema
                else "take them as the new state with `python -m pipelines schema accept`"
            )
            if any(anomaly.is_drift for anomaly in failing):
                accepting += (
                    ", or name a column that is meant to change in example_validator.moving"
                )
            raise RunFailedError(
                self._validator.id,
                f"the data are not what the model needs ({len(failing)} anomalies; the first: "
                f"{failing[0].text}) and example_validator.on_anomalies = {self._on_anomalies!r}. Mend "
                f"the data; if they are right, {accepting}",
                is_bad_input=True,
            )


def _compares_models(plan: RunPlan) -> bool:
    return plan.code.plan is not None and plan.code.plan.training.model == "auto"


class _ModelRecording:
    """Records the models that the generic model is the best of."""

    def __init__(self, recorder: RunRecorder):
        self._recorder = recorder

    def __call__(self, outputs: Mapping[str, list[Any]]) -> None:
        from pipelines.tabular.model_selection import read_candidates

        found = read_candidates(outputs["model_run"][0].uri)
        self._recorder.add_models(tuple(candidate.as_record() for candidate in found))
        (chosen,) = (candidate for candidate in found if candidate.is_chosen)
        others = "; ".join(one.describe() for one in found if one is not chosen)
        self._recorder.note(f"model: {chosen.describe()} is better than {others}")


class _VerdictRecording:
    """Records the metrics as soon as they are known: a run that is killed later has them, too."""

    def __init__(self, plan: RunPlan, recorder: RunRecorder):
        self._names = plan.code.metrics
        self._root = plan.root
        self._thresholds = merge_thresholds(plan.code.thresholds)
        self._recorder = recorder

    def __call__(self, outputs: Mapping[str, list[Any]]) -> None:
        import components

        verdict = components.load_verdict(outputs["evaluation"][0].uri)
        metrics = _in_order(verdict.metrics, self._names)
        baseline = _in_order(verdict.baseline_metrics, self._names)
        self._recorder.add_verdict(
            metrics,
            baseline,
            {name: _in_order(values, self._names) for name, values in verdict.slices.items()},
            check_records(verdict.checks, self._thresholds, metrics, baseline, verdict.intervals),
            verdict.not_checked,
            dict(verdict.intervals),
        )
        former = run_of_version(self._root, self._recorder.record.baseline_version)
        if former is not None and baseline:
            note = changed_data_note(
                former.version,
                former.metrics,
                former.intervals,
                baseline,
                verdict.baseline_intervals,
            )
            if note:
                self._recorder.note(note)


def _outcome(plan: RunPlan, pipeline: "CsvToServing", launcher: "ComponentLauncher") -> RunOutcome:
    """Returns the verdict and the pushed version that the components have left."""
    import components

    pushed = launcher.artifact(pipeline.pusher.outputs["pushed_model"])
    if pushed.get_int_custom_property("pushed") == 1:
        return RunOutcome("pushed", version=pushed.get_string_custom_property("pushed_version"))
    if unchanged := pushed.get_string_custom_property("unchanged_version"):
        reason = pushed.get_string_custom_property("not_pushed_reason")
        if version_state(plan.root, unchanged) == "withdrawn":
            reason += f" (`rollback --to {unchanged}` serves it again)"
        return RunOutcome("unchanged", reason=reason)
    verdict = components.load_verdict(
        launcher.artifact(pipeline.evaluator.outputs["evaluation"]).uri
    )
    return RunOutcome("not_blessed", reason="; ".join(verdict.failures))


def _in_order(metrics: Metrics, names: tuple[str, ...]) -> Metrics:
    """Returns the metrics in the order of their configuration, further ones behind.

    TFMA adds a `<metric>_diff` to the baseline's; who has both values needs no third.
    """
    return {
        name: metrics[name]
        for name in dict.fromkeys((*names, *metrics))
        if name in metrics and name.removesuffix("_diff") not in metrics.keys() - {name}
    }
