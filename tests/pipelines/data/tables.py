"""Small files of a table that is given by columns."""

from pipelines.data.column_cells import ColumnCells
from pipelines.data.profile import profile_csv


def write_table(folder, columns, delimiter=","):
    """Writes {name: cells} into `folder / "data.csv"`, and returns the file."""
    rows = ([*columns], *zip(*columns.values(), strict=True))
    file = folder / "data.csv"
    file.write_text("".join(delimiter.join(map(str, row)) + "\n" for row in rows))
    return file


def column_of(folder, name, cells):
    """Returns the profile and the cells of a file of one column, whose cells are in quotes."""
    profile = profile_csv([write_table(folder, {f'"{name}"': [f'"{cell}"' for cell in cells]})])
    return profile.columns[name], ColumnCells(profile, name)
