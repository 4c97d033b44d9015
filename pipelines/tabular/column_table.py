"""Table of columns: the kind, the use and the share of missing cells of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.data.kinds import ColumnKind
from pipelines.data.profile import CsvProfile
from pipelines.tabular.plan import TabularPlan

HEADER = ("column", "kind", "used as", "missing", "note")


@dataclass(frozen=True)
class ColumnRow:
    """Row of the table.

    Attributes:
      name: Name of the column.
      kind: Kind of the column.
      use: Use of the column.
      missing_share: Share of its cells that are missing, 0 to 1.
      note: Evidence for the kind, or a peculiarity.
      decimal: Decimal mark of numbers that `float` does not read.
    """

    name: str
    kind: str
    use: str
    missing_share: float
    note: str
    decimal: str | None = None

    def cells(self) -> tuple[str, str, str, str, str]:
        """Returns the cells of the row, in the order of `HEADER`."""
        return self.name, self.kind, self.use, f"{self.missing_share:.1%}", self.note


def list_columns(
    profile: CsvProfile,
    kinds: Mapping[str, ColumnKind],
    label: str,
    plan: TabularPlan | None,
    warnings: Mapping[str, str] | None = None,
) -> tuple[ColumnRow, ...]:
    """Returns the columns in the order of the header.

    Args:
      profile: Profile of the files.
      kinds: Kind of each column.
      label: Column of the label.
      plan: Plan of the generic model; None for a user's module.
      warnings: Text before the note of a column, by column.
    """
    rows = []
    for name, column in profile.columns.items():
        kind = kinds[name]
        use = _use(name, label, plan)
        note = "" if kind.note and kind.note in use else kind.note
        parts = ((warnings or {}).get(name, ""), note, "by [columns]" if kind.is_given else "")
        share = column.num_missing / profile.num_rows
        rows.append(
            ColumnRow(name, kind.name, use, share, "; ".join(filter(None, parts)), kind.decimal)
        )
    return tuple(rows)


def _use(name: str, label: str, plan: TabularPlan | None) -> str:
    if plan is None:
        return "label" if name == label else "up to the module"
    if name == label:
        classes = f", {len(plan.label.classes)} classes" if plan.label.classes else ""
        return f"label ({plan.label.problem_type}{classes})"
    if name in plan.ignored:
        return f"not used: {plan.ignored[name]}"
    uses = []
    for number in plan.numeric:
        if number.column == name:
            uses.append("days" if number.date else "number")
    for category in plan.categorical:
        if category.column == name and category.part:
            uses.append(category.part)
        elif category.column == name:
            hashed = f"hashed into {category.hash_buckets}" if category.hash_buckets else ""
            uses.append(f"category ({hashed or f'{category.num_values} values'})")
    for text in plan.text:
        if text.column == name:
            pairs = " and pairs of words" if text.has_pairs else ""
            uses.append(f"words{pairs} (hashed into {text.hash_buckets})")
    return ", ".join(uses)


def table_lines(rows: Sequence[ColumnRow]) -> list[str]:
    """Returns the table as lines of text, the header first."""
    cells = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(HEADER))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
