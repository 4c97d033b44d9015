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
    """The plan of a run."""

    root: Root
    config: PipelineConfig
    profile: CsvProfile  # Profile of the CSV files
    code: ModelCode  # Code that is trained, and how its model is judged
    enable_cache: bool  # Skips components whose inputs have not changed
    unfinished: RunRecord | None  # Run that this one continues; None for a new run
    schema: CuratedSchema | None = None  # Curated schema of the user; None infers it
    # Former runs whose training this one continues with changed code, the newest first.
    continued: tuple[RunRecord, ...] = ()
    columns: tuple[ColumnRow, ...] = ()  # Kind and use of each column
    splits: Splits = ROW_BY_ROW  # Division of the rows into train and eval
    findings: tuple[str, ...] = ()  # Sentences about the data for the user
    # Schema of the root, which the data are validated against, or if the user gives one.
    root_schema: RootSchema | None = None
    type_overrides: TypeOverrides = field(default_factory=TypeOverrides)
    spans: ResolvedSpans | None = None  # Spans that are read; None if `data.path` has none
    # Columns that stay text though they look like numbers, beside those of `type_overrides`.
    text_columns: tuple[str, ...] = ()
    scheduled_by: str | None = None  # Tick of the schedule that started the run
    bad_rows: BadRows | None = None  # Rows that cannot be read, and were left out
    # Hash of everything that determines the model; empty if it is not known.
    model_fingerprint: str = ""
    leaks: tuple[Leak, ...] = ()  # Columns that tell the label, as far as the data alone show it
    # Reasons to hold the model that the data alone give, one sentence each.
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
