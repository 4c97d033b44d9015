"""Codes such as 00037, which CsvExampleGen reads as whole numbers, in columns that a module uses.

The generic model keeps them as text by itself. A module may expect numbers: it gets text if configured, and
otherwise a note reports the loss.
"""

from collections.abc import Collection

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.toml import columns_entry
from pipelines.data.column_cells import ColumnCells
from pipelines.data.profile import CsvProfile

_KEPT = ("category", "text")


def columns_with_leading_zeros(profile: CsvProfile) -> tuple[str, ...]:
    """Returns the columns of whole numbers of which some have leading zeros."""
    return tuple(
        name
        for name, column in profile.columns.items()
        if column.type == "integer" and ColumnCells(profile, name).count("^0[0-9]")
    )


def kept_codes(config: PipelineConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Returns those of the columns that are configured as a category or text."""
    return tuple(
        name
        for name in columns
        if config.columns.get(name) in _KEPT or name in config.data.categorical
    )


def lost_zeros_notes(config: PipelineConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Returns a note on the columns whose leading zeros a module does not see, if there are any."""
    data = config.data
    known = {*config.columns, *data.exclude, *data.numeric, *data.categorical, data.label}
    lost = [name for name in columns if name not in known]
    if not lost:
        return ()
    names = ", ".join(map(repr, lost))
    return (
        f"the module gets {names} as int64, without the leading zeros of the cells. Keep them as text: "
        f"{columns_entry(lost[0], 'category')}",
    )
