"""Prepares the schema that becomes the root's when a run pushes, if the root has none yet."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.root import Root
from pipelines.root.schema.text import parse_schema, read_bytes, schema_to_keep

if TYPE_CHECKING:
    from pipelines.runs.definitions.run_plan import RunPlan


@dataclass(frozen=True)
class SchemaKeeping:
    """Parameters for keeping the schema of a run, as plain values for use in another process."""

    columns: tuple[dict[str, Any], ...]  # Columns with their kinds: the fields of `ColumnRow`
    label: str  # Name of the label's column
    classes: tuple[str, ...]  # Classes of a classification with the generic model
    moving: tuple[str, ...]  # Columns whose values are meant to change from run to run

    @classmethod
    def from_plan(cls, plan: "RunPlan") -> "SchemaKeeping | None":
        """Returns the parameters for a run; None if the user has given a schema."""
        if plan.schema is not None:
            return None
        label = plan.code.plan.label if plan.code.plan else None
        return cls(
            tuple(asdict(column) for column in plan.columns),
            plan.config.data.label,
            tuple(label.classes) if label else (),
            plan.moving_columns,
        )

    def prepare(self, schema_uri: str, root: Root, run_id: str) -> None:
        """Writes the schema next to the root's, unless the root has one."""
        if root.schema.file.exists():
            return
        (file,) = Path(schema_uri).glob("*.pbtxt")
        kinds = {column["name"]: column["kind"] for column in self.columns}
        schema = schema_to_keep(
            parse_schema(read_bytes(file), str(file), ""), kinds, self.label, self.classes, self.moving
        )
        root.schema.prepare(run_id, schema, self.columns)
