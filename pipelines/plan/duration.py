"""Rough estimate of the time that a run takes before its training, from the size of the data."""

_SECS = 45.0  # imports, and what each component does once
_SECS_PER_COLUMN = 0.04
_SECS_PER_CELL = 8e-6
_SHORT_SECS = 120.0


def preparation_secs(num_rows: int, num_columns: int) -> float:
    """Returns the seconds from the start of a run to its training, on two cores of a quiet machine.

    Args:
      num_rows: Number of rows of all files.
      num_columns: Number of columns.
    """
    cells = num_rows * num_columns
    return _SECS + num_columns * _SECS_PER_COLUMN + cells * _SECS_PER_CELL


def preparation_note(num_rows: int, num_columns: int) -> str | None:
    """Returns a sentence on the time until the training; None if it is short.

    Args:
      num_rows: Number of rows of all files.
      num_columns: Number of columns.
    """
    secs = preparation_secs(num_rows, num_columns)
    if secs < _SHORT_SECS:
        return None
    return (
        f"{num_rows:,} rows of {num_columns:,} columns: a run takes about {secs / 60:.0f} minutes until its "
        "training begins, on two cores of a quiet machine"
    )
