"""Table of columns: the kind, the use and the share of missing cells of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.data.formats.date_format import DateName
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.kinds import ColumnKind
from pipelines.data.profile import CsvProfile
from pipelines.errors import counted
from pipelines.tabular.plan import TabularPlan

HEADER = ("column", "kind", "used as", "missing", "note")


@dataclass(frozen=True)
class ColumnRow:
    name: str
    kind: str
    use: str
    missing_share: float
    note: str  # Evidence for the kind, or a peculiarity
    number_format: NumberFormat | None = None  # Format of numbers that `float` does not read
    date_format: DateName | None = None

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
    """Returns the columns in the order of the header."""
    rows = []
    uses = _uses(label, plan)
    other = ["up to the module"] if plan is None else []
    for name, column in profile.columns.items():
        kind = kinds[name]
        use = ", ".join(uses.get(name, other))
        note = "" if kind.note and kind.note in use else kind.note
        parts = ((warnings or {}).get(name, ""), note, "by [columns]" if kind.is_given else "")
        share = column.num_missing / profile.num_rows
        rows.append(
            ColumnRow(
                name,
                kind.name,
                use,
                share,
                "; ".join(filter(None, parts)),
                kind.number_format,
                kind.date_format,
            )
        )
    return tuple(rows)


def _uses(label: str, plan: TabularPlan | None) -> dict[str, list[str]]:
    if plan is None:
        return {label: ["label"]}
    uses: dict[str, list[str]] = {}
    for number in plan.numeric:
        uses.setdefault(number.column, []).append("days" if number.date else "number")
    for category in plan.categorical:
        hashed = f"hashed into {category.hash_buckets}" if category.hash_buckets else ""
        use = category.part or f"category ({hashed or counted(category.num_values, 'value')})"
        uses.setdefault(category.column, []).append(use)
    for text in plan.text:
        pairs = " and pairs of words" if text.has_pairs else ""
        use = f"words{pairs} (hashed into {text.hash_buckets})"
        uses.setdefault(text.column, []).append(use)
    for lists in plan.lists:
        uses.setdefault(lists.column, []).append(f"{counted(len(lists.parts), 'part')} of lists")
    uses |= {name: [f"not used: {reason}"] for name, reason in plan.ignored.items()}
    classes = f", {len(plan.label.classes)} classes" if plan.label.classes else ""
    if plan.weight and plan.weight.column:
        uses[plan.weight.column] = ["weight of the row"]
    return uses | {label: [f"label ({plan.label.problem_type}{classes})"]}


def table_lines(rows: Sequence[ColumnRow], width: int | None = None) -> list[str]:
    """Returns the table as lines of text, the header first.

    `width`: characters of a line, into which cells are wrapped. Default: no limit.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*HEADER, box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row.cells()))
    console = Console(width=width or 100_000)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]
