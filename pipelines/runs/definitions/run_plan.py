"""Plan of a run: all decisions made before anything is written."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.bad_rows import BadRows
from pipelines.data.encoding import Utf8Files
from pipelines.data.kinds import MOVING_KINDS, ColumnKind
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


@dataclass(frozen=True, kw_only=True)
class CsvData:
    """The data files after reading."""

    profile: CsvProfile
    kinds: dict[str, ColumnKind] = field(default_factory=dict)
    splits: Splits = ROW_BY_ROW  # Division of the rows into train and eval
    texts: Utf8Files  # User's files, and copies of them in UTF-8 if they are in another encoding
    facts: tuple[str, ...] = ()  # What was detected or chosen, one sentence each
    findings: tuple[str, ...] = ()  # Warnings, one sentence each
    # Columns whose type comes from the root's schema.
    type_overrides: TypeOverrides = field(default_factory=TypeOverrides)
    spans: ResolvedSpans | None = None  # Spans that are read; None if `data.path` has none
    bad_rows: BadRows | None = None  # Rows that cannot be read, and were left out


@dataclass(frozen=True, kw_only=True)
class DataPlan(CsvData):
    """The data, and what a model learns from them."""

    code: ModelCode  # Code that is trained, and how its model is judged
    columns: tuple[ColumnRow, ...] = ()  # Kind and use of each column
    leaks: tuple[Leak, ...] = ()  # Columns that are the label in other words
    # Columns that CsvExampleGen leaves as text though they look like numbers, in addition to those that are
    # text in the root's schema.
    text_columns: tuple[str, ...] = ()
    schema: CuratedSchema | None = None  # User's own schema; None infers it


@dataclass(frozen=True, kw_only=True)
class RunPlan(DataPlan):
    root: Root
    config: PipelineConfig
    enable_cache: bool = True  # Skips components whose inputs have not changed
    unfinished: RunRecord | None = None  # Run to continue; None for a new run
    # Earlier runs whose training this run continues with changed code, the newest first.
    continued: tuple[RunRecord, ...] = ()
    # Schema of the root, which the data are validated against, or if the user gives one.
    root_schema: RootSchema | None = None
    scheduled_by: str | None = None  # Tick of the schedule that started the run
    model_fingerprint: str = ""  # Hash of everything that determines the model; empty if it is not known
    doubts: tuple[str, ...] = ()  # Reasons to hold the model that the data alone give, one sentence each

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
