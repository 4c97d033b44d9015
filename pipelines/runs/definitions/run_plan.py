"""Plan of a run: all decisions made before anything is written."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.bad_rows import BadRows
from pipelines.data.kinds import MOVING_KINDS
from pipelines.data.leaks import Leak
from pipelines.data.profile import CsvProfile
from pipelines.data.spans import ResolvedSpans
from pipelines.data.splits import ROW_BY_ROW, Splits
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.root.schema.curated import CuratedSchema
from pipelines.root.schema.root_schema import RootSchema
from pipelines.root.schema.type_overrides import TypeOverrides
from pipelines.runs.definitions.model_code import ModelCode
from pipelines.tabular.column_table import ColumnRow

if TYPE_CHECKING:
    from components import LocalCluster


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run.

    Attributes:
      root: Root of the runs.
      config: Configuration.
      profile: Profile of the CSV files.
      code: Code that is trained, and how its model is judged.
      enable_cache: Skips components whose inputs have not changed.
      unfinished: Run that this one continues; None for a new run.
      schema: Curated schema of the user; None infers it.
      root_schema: Schema of the root, which the data are validated against; None if there is none, or if
        the user gives one.
      type_overrides: Columns that are read with the types of `root_schema`.
      continued: Former runs whose training this one continues with changed code, the newest first.
      columns: Kind and use of each column.
      splits: Division of the rows into train and eval.
      findings: Sentences about the data for the user.
      spans: Spans that are read; None if `data.path` has none.
      text_columns: Columns that stay text though they look like numbers, beside those of `type_overrides`.
      scheduled_by: Tick of the schedule that started the run.
      bad_rows: Rows that cannot be read, and were left out; None without any.
      model_fingerprint: Hash of everything that determines the model; empty if it is not known.
      leaks: Columns that tell the label, as far as the data alone show it.
      doubts: Reasons to hold the model that the data alone give, one sentence each.
    """

    root: Root
    config: PipelineConfig
    profile: CsvProfile
    code: ModelCode
    enable_cache: bool
    unfinished: RunRecord | None
    schema: CuratedSchema | None = None
    continued: tuple[RunRecord, ...] = ()
    columns: tuple[ColumnRow, ...] = ()
    splits: Splits = ROW_BY_ROW
    findings: tuple[str, ...] = ()
    root_schema: RootSchema | None = None
    type_overrides: TypeOverrides = field(default_factory=TypeOverrides)
    spans: ResolvedSpans | None = None
    text_columns: tuple[str, ...] = ()
    scheduled_by: str | None = None
    bad_rows: BadRows | None = None
    model_fingerprint: str = ""
    leaks: tuple[Leak, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def moving_columns(self) -> tuple[str, ...]:
        """Columns whose values are expected to be new in each run's data."""
        of_kind = (column.name for column in self.columns if column.kind in MOVING_KINDS)
        return (*self.config.example_validator.moving, *of_kind)

    @property
    def cluster(self) -> "LocalCluster | None":
        """Processes that train together; None trains in one process."""
        import components

        settings = self.config.trainer
        if not settings.workers:
            return None
        return components.LocalCluster(settings.workers, settings.ps, settings.evaluator)
