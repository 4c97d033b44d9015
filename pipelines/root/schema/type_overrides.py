"""Columns that are read with their type in the root's schema, though the new cells look different.

A served model takes a number as float32 or as text, and its clients send it so. That must not change when
the decimal numbers of a column happen to be whole in one file, or its codes happen to be digits.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pipelines.config.data import ColumnUse
from pipelines.config.toml import columns_entry
from pipelines.data.column_cells import ColumnCells
from pipelines.data.column_profile import ColumnType
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.kinds import ColumnKind
from pipelines.data.number_kinds import describe_format, first_unreadable, may_miss
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError
from pipelines.root.schema.root_schema import RootSchema

_USES: dict[str, ColumnUse] = {
    "number": "number",
    "date": "date",
    "list": "list",
    "text": "text",
    "category": "category",
    "boolean": "category",
}


@dataclass(frozen=True)
class TypeOverrides:
    """Columns whose type comes from the root's schema, not from their cells."""

    text: tuple[str, ...] = ()  # Columns that stay text though their cells are numbers
    floats: tuple[str, ...] = ()  # Columns that are float32 though their cells are whole numbers
    # Use of some of these columns, as in the schema's run.
    uses: Mapping[str, ColumnUse] = field(default_factory=dict)
    new: tuple[str, ...] = ()  # Columns that the schema does not have
    number_formats: Mapping[str, NumberFormat] = field(default_factory=dict)

    def apply(
        self, profile: CsvProfile, kinds: Mapping[str, ColumnKind], use_new_columns: bool = False
    ) -> tuple[CsvProfile, dict[str, ColumnKind]]:
        """Returns the profile and the kinds of the columns, with these types.

        `use_new_columns`: uses new columns like others. By default a new column without a configured use is
        marked as new, and the generic model does not use it.
        """
        for name, written in self.number_formats.items():
            _check_format(profile, name, written)
        types: dict[str, ColumnType] = {
            # Some stay text by their kind, such as codes with leading zeros: they are read as before.
            **{name: "string" for name in self.text if not kinds[name].keeps_text},
            **dict.fromkeys(self.floats, "float"),
        }
        columns = {
            name: replace(column, type=types.get(name, column.type))
            for name, column in profile.columns.items()
        }
        as_kept = {
            name: replace(
                kind,
                keeps_text=kind.keeps_text or name in self.text,
                is_given=kind.is_given and name not in self.uses,
                is_new=name in self.new and not use_new_columns and not kind.is_given,
                number_format=self.number_formats.get(name, kind.number_format),
            )
            for name, kind in kinds.items()
        }
        return replace(profile, columns=columns), as_kept


def _check_format(profile: CsvProfile, name: str, written: NumberFormat) -> None:
    cells, num_values = ColumnCells(profile, name), profile.columns[name].num_values
    num_misfits = num_values - cells.count(written.pattern)
    if may_miss(num_misfits, num_values):
        return
    odd = first_unreadable(cells, written)
    raise BadInputError(
        f"{profile.find_cell(name, lambda text: text == odd)}: {num_misfits} of {num_values} cells "
        f"{'is' if num_misfits == 1 else 'are'} not in the format of the root's schema "
        f"({describe_format(cells, written)}). Use that format; or set {columns_entry(name, 'number')} to "
        "read them as they are now."
    )


def override_notes(overrides: TypeOverrides, kinds: Mapping[str, ColumnKind]) -> tuple[str, ...]:
    """Returns one sentence for each column that is not read with the type of its cells."""
    as_text = tuple(name for name in overrides.text if not kinds[name].keeps_text)
    return tuple(
        f"column {name!r} holds only {what}; it is read as {as_type}, as in the root's schema"
        for names, what, as_type in (
            (as_text, "numbers", "text"),
            (overrides.floats, "whole numbers", "float32"),
        )
        for name in names
    )


def changed_kinds(root_schema: RootSchema | None, kinds: Mapping[str, ColumnKind]) -> tuple[str, ...]:
    """Returns one sentence for each column whose kind has changed since the schema's run."""
    before = root_schema.origin.kinds if root_schema and root_schema.origin else {}
    return tuple(
        f"column {name!r} was read as {before[name]}, and is read as {kind.name} now"
        for name, kind in kinds.items()
        if name in before
        and not kind.is_given
        and _USES.get(before[name])
        and _USES.get(before[name]) != _USES.get(kind.name)
    )


def find_type_overrides(
    profile: CsvProfile, root_schema: RootSchema | None, configured: Collection[str] = ()
) -> TypeOverrides:
    """Returns the columns whose cells look different from their type in the root's schema."""
    if root_schema is None:
        return TypeOverrides()
    types = root_schema.types
    kinds = root_schema.origin.kinds if root_schema.origin else {}
    text: list[str] = []
    floats: list[str] = []
    uses: dict[str, ColumnUse] = {}
    for name, column in profile.columns.items():
        # `NA` and the like already turn a column of numbers into text.
        looks_numeric = column.is_numeric and not column.holds_missing_tokens
        if types.get(name) == "BYTES" and looks_numeric:
            text.append(name)
        elif types.get(name) == "FLOAT" and column.type == "integer":
            floats.append(name)
        else:
            continue
        use = _USES.get(kinds.get(name, ""))
        is_date = use == "date"  # only the cells show whether they are dates
        if use and not is_date and name not in configured:
            uses[name] = use
    new = tuple(name for name in profile.columns if name not in types)
    kept_formats = root_schema.origin.number_formats if root_schema.origin else {}
    formats = {
        name: kept_formats[name] for name in text if uses.get(name) == "number" and name in kept_formats
    }
    return TypeOverrides(tuple(text), tuple(floats), uses, new, formats)
