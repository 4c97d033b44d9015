"""The size of the blocks in which a CSV is read."""

_COLUMNS_PER_BLOCK = 500
_MAX_BLOCKS = 8


def block_bytes(least: int, num_columns: int) -> int:
    """Returns the size of a block: larger for a wide table, whose blocks would have few rows.

    Each column of a block has a fixed cost, regardless of the number of rows.
    """
    return least * min(_MAX_BLOCKS, max(1, num_columns // _COLUMNS_PER_BLOCK))
