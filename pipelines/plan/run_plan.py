"""The first part of a run: the request, checked against the data. Nothing is written yet."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.beam.options import engine_name
from pipelines.cache.fingerprints import model_fingerprint
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.profile import CsvProfile
from pipelines.data.spans import ResolvedSpans
from pipelines.data.splits import ROW_BY_ROW, Splits
from pipelines.data.staging import StagedData
from pipelines.definitions import evaluation
from pipelines.definitions.model_code import ModelCode
from pipelines.errors import BadInputError
from pipelines.plan.changed_code import touches_training
from pipelines.plan.data_plan import plan_data
from pipelines.plan.inputs import RunInputs, RunRequest, read_inputs
from pipelines.root.changed_data import baseline_when_pushed
from pipelines.root.history import mended_runs, newest_version_ever, unsettled_pushes
from pipelines.root.metadata.place import connection_config, root_id
from pipelines.root.records import RunRecord
from pipelines.root.schema.curated import CuratedSchema
from pipelines.root.schema.kept_types import KeptTypes
from pipelines.root.schema.root_schema import RootSchema, read_root_schema, schema_file
from pipelines.tabular.column_table import ColumnRow
from pipelines.terminal.progress import Display

if TYPE_CHECKING:
    from components import LocalCluster
    from pipelines.definitions.csv_to_serving import CsvToServing


_MOVING_KINDS = ("date", "id")
"""Kinds of columns whose values are others in new data."""


@dataclass(frozen=True)
class RunPlan:
    """What a run is going to do.

    Attributes:
      root: Absolute path; everything of the pipeline is kept below it.
      config: The configuration.
      profile: Of the CSV files.
      code: What is trained, and how it is judged.
      enable_cache: Whether unchanged components are skipped.
      unfinished: The run that this one goes on with; None for a new run.
      schema: The user's own; None infers it.
      root_schema: The root's, that the data are held against; None without one, or with the user's own.
      kept: Columns that are read as that schema has them.
      mended: The run that failed or was stopped whose training this one goes on with though the code
        has changed; behind it the one whose training that one went on with, and so on.
      columns: What each column is taken for, and how it is used.
      splits: How the rows are divided.
      findings: What is worth knowing of the data, one sentence each.
      spans: That are read; None where `data.path` has none.
      text_columns: Columns that stay text though they look like numbers, beside those of `kept`.
      scheduled_by: The tick of a schedule that the run belongs to.
    """

    root: Path
    config: PipelineConfig
    profile: CsvProfile
    code: ModelCode
    enable_cache: bool
    unfinished: RunRecord | None
    schema: CuratedSchema | None = None
    mended: tuple[RunRecord, ...] = ()
    columns: tuple[ColumnRow, ...] = ()
    splits: Splits = ROW_BY_ROW
    findings: tuple[str, ...] = ()
    root_schema: RootSchema | None = None
    kept: KeptTypes = field(default_factory=KeptTypes)
    spans: ResolvedSpans | None = None
    text_columns: tuple[str, ...] = ()
    scheduled_by: str | None = None

    def define(self, data: StagedData, beam_args: tuple[str, ...] = ()) -> "CsvToServing":
        """Returns the pipeline that does it.

        Args:
          data: What CsvExampleGen reads.
          beam_args: Options of Beam that belong to the pipeline. A runner gives its own at each run,
            which the cache does not see.
        """
        import components
        from pipelines.definitions.csv_to_serving import PipelinePlaces, csv_to_serving

        validator = self.config.example_validator
        kept_text = tuple(name for name in self.kept.text if name not in self.text_columns)
        return csv_to_serving(
            name=".".join(filter(None, (self.config.name, root_id(self.root)))),
            data=data,
            code=self.code,
            eval_config=evaluation.build_eval_config(
                self.code.label, self.code.metrics, self.code.thresholds, self.code.slices
            ),
            places=PipelinePlaces(
                artifacts=self.root / "artifacts",
                metadata=connection_config(self.root, self.config.metadata),
                serving=self.root / "serving",
                withdrawn=self.root / "withdrawn",
            ),
            curated_schema=self.schema.file if self.schema else None,
            infer_feature_shape=self.config.schema_.infer_feature_shape,
            newer_than=newest_version_ever(self.root),
            taken_over=unsettled_pushes(self.root),
            model_fingerprint=""  # of a training that other code began, nothing tells what it is
            if self.mended
            else model_fingerprint(
                self.config,
                self.code,
                self.profile.files,
                self.schema,
                (kept_text, self.kept.floats),
            ),
            enable_cache=self.enable_cache,
            keep=self.config.pusher.keep,
            baseline_then=baseline_when_pushed(self.root),
            beam_args=beam_args,
            cluster=self._cluster(),
            warm_start=self.config.trainer.warm_start,
            group_column=self.splits.column if self.splits.by == "column" else None,
            text_columns=self.text_columns + kept_text,
            float_columns=self.kept.floats,
            root_schema=schema_file(self.root) if self.root_schema else None,
            accepted_run=self.root_schema.run_to_compare_with(self.root)
            if self.root_schema
            else "",
            label_column=self.config.data.label,
            drift_limits=components.DriftLimits(
                validator.l_infinity, validator.jensen_shannon, validator.breaking
            ),
            moving_columns=self.moving_columns,
        )

    @property
    def moving_columns(self) -> tuple[str, ...]:
        """Columns that are meant to be others each time."""
        of_kind = (column.name for column in self.columns if column.kind in _MOVING_KINDS)
        return (*self.config.example_validator.moving, *of_kind)

    def _cluster(self) -> "LocalCluster | None":
        import components

        settings = self.config.trainer
        if not settings.workers:
            return None
        return components.LocalCluster(settings.workers, settings.ps, settings.evaluator)


def plan_run(request: RunRequest, display: Display, inputs: RunInputs | None = None) -> RunPlan:
    """Returns what a run is going to do.

    Args:
      request: What to run, and where.
      display: Shows the progress.
      inputs: Of `read_inputs`. Default: they are read.

    Raises:
      BadInputError: The data, the configuration or the root cannot be used.
    """
    inputs = inputs or read_inputs(request, display)
    root, config, data = inputs.root, inputs.config, inputs.data
    root_schema, unfinished = inputs.root_schema, inputs.unfinished
    profile = data.profile
    if config.module is not None:
        display.activity(f"loading {config.module.path or config.module.file}")
    learned = plan_data(config, data)
    code = learned.code
    mended: tuple[RunRecord, ...] = ()
    if unfinished is not None:
        _check_same_run(unfinished, config, profile)
        _check_same_schema(unfinished, root_schema)
        where = config.module and (config.module.path or config.module.file)
        where = where or "the generic model"
        records = (unfinished, *mended_runs(root, unfinished))
        if touches_training(root, records, code, where, request.force):
            unfinished, mended = None, records
        else:
            mended = records[1:]
    findings = learned.findings
    if request.runner == "local" and config.beam.has_engine:
        findings += (
            f"--runner local has Beam work in its own process; for {engine_name(config.beam)} as [beam] "
            "says, run with --runner beam",
        )
    return RunPlan(
        root=root,
        config=config,
        profile=profile,
        code=code,
        enable_cache=request.enable_cache,
        unfinished=unfinished,
        schema=learned.schema,
        mended=mended,
        columns=learned.columns,
        splits=data.splits,
        findings=findings,
        root_schema=root_schema,
        kept=data.kept,
        spans=data.spans,
        text_columns=learned.text_columns,
        scheduled_by=request.scheduled_by,
    )


def check_same_root_schema(plan: RunPlan) -> None:
    """Checks that the root's schema is the one that a plan was made by.

    Raises:
      BadInputError: Another process has written it meanwhile.
    """
    if plan.schema is not None:
        return
    found = read_root_schema(plan.root)
    if found != plan.root_schema:
        raise BadInputError(
            f"The schema of {plan.root} was changed while the data were read. Run again: they are held "
            "against it then."
        )


def _check_same_run(unfinished: RunRecord, config: PipelineConfig, profile: CsvProfile) -> None:
    """Checks that what is asked for is what the unfinished run was doing."""
    advice = "Start a new run without --resume; unchanged components are reused all the same"
    advice += (
        "." if unfinished.mended is None else ", but not what two versions of the code trained."
    )
    known = unfinished.validated_config()  # with settings that are new since
    before, now = (
        _flat(one.model_dump(mode="json", exclude={"beam", "retention", "metadata"}))
        for one in (known, config)
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


def _check_same_schema(unfinished: RunRecord, root_schema: RootSchema | None) -> None:
    """Checks that an unfinished run does not rest on a validation that does not count any more."""
    advice = "Start a new run without --resume; unchanged components are reused all the same."
    origin = root_schema.origin if root_schema else None
    if origin and origin.accepted_for is not None and origin.written >= unfinished.started:
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
            f"--resume: run {unfinished.run_id} ended as its data did not fit, and would again. {advice}"
        )


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the values of a configuration by `section.key`."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= (
            _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return flat
