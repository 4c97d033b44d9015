"""The size of the blocks in which a CSV is read."""

_COLUMNS_PER_BLOCK = 500
_MAX_BLOCKS = 8


def block_bytes(least: int, num_columns: int) -> int:
    """Returns the size of a block: larger for a wide table, whose blocks would have few rows.

    A block is worked on column by column, which costs the same for few rows as for many.

    `least`: size for a table of few columns, in bytes.
    """
    return least * min(_MAX_BLOCKS, max(1, num_columns // _COLUMNS_PER_BLOCK))
