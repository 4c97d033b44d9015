"""Recognizes booleans in words, codes, ids, and free text."""

import re

from pipelines.data.column_cells import ColumnCells
from pipelines.data.column_profile import ColumnProfile
from pipelines.data.formats.cell_format import TextFormat
from pipelines.data.formats.number_format import PLAIN

BOOLEAN_WORDS = (
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("on", "off"),
    ("ja", "nein"),
    ("oui", "non"),
    ("si", "no"),
    ("sí", "no"),
    ("sim", "não"),
    ("wahr", "falsch"),
)
"""Pairs of words; the first one means true."""

ID_SHARE = 0.9
"""A text column with a larger share of distinct values is an id."""

_CODE_NAME = re.compile(
    r"(^|[^a-z])(zip|zips|zip_?code|postal|post_?code|postcode|plz|cep|fips|census_tract|naics|sic"
    r"|icd|area_?code|country_?code|iban|bic|ean|upc|isbn|phone|code)($|[^a-z])"
)
_ID_NAME = re.compile(
    r"^(unnamed|id|.*[ _-]id|.*Id|.*ID|uuid|guid|index|row ?(id|number)|Unnamed: \d+)$", re.ASCII
)
_WITHOUT_ZEROS = "^(?:0|-?[1-9][0-9]*)$"
_TRUE_OR_FALSE = "^(?i:true|false)$"
_TWO_SPACES = r"^\S+\s+\S+\s+\S"  # three words
_MIN_PROSE_SHARE = 0.5
_MIN_TEXT_DISTINCT = 20
_MIN_TEXT_DISTINCT_SHARE = 0.3
_MIN_CODE_WIDTH = 3
_MIN_TO_COUNT = 100


def is_called_id(name: str) -> bool:
    """Returns whether a column's name is typical of ids."""
    return _ID_NAME.match(name) is not None


def boolean_words(column: ColumnProfile) -> tuple[str, str] | None:
    """Returns the pair of words that makes up the column's cells, in any case, or None."""
    if not column.distinct_values or len(column.distinct_values) > 10:
        return None
    values = {value.lower() for value in column.distinct_values}
    return next((pair for pair in BOOLEAN_WORDS if values == set(pair)), None)


def why_code(column: ColumnProfile, cells: ColumnCells) -> str | None:
    """Returns the reason why digits are a code, not a quantity; None when they seem to be a quantity."""
    if column.type != "integer":
        return None
    if cells.count("^0[0-9]"):
        return "a code: leading zeros"
    width = cells.count(f"^[0-9]{{{_MIN_CODE_WIDTH},}}$")
    if width == column.num_values and _is_called_code(column.name):
        return "a code by its name"
    if is_called_id(column.name):
        return "ids that repeat"
    return None


def is_code(column: ColumnProfile, cells: ColumnCells) -> bool:
    """Returns whether text, most of which is numbers, is codes, such as `00037` and `SW1A`."""
    has_name = _is_called_code(column.name) or is_called_id(column.name)
    return has_name or cells.count("^0[0-9]") > 0


def _is_called_code(name: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _CODE_NAME.search(words) is not None


def is_free_text(column: ColumnProfile, cells: ColumnCells) -> bool:
    """Returns whether cells are sentences or names: several words, with few repetitions."""
    distinct = column.num_distinct
    if distinct is not None and (
        distinct < _MIN_TEXT_DISTINCT or distinct < _MIN_TEXT_DISTINCT_SHARE * column.num_values
    ):
        return False
    return cells.count(_TWO_SPACES) >= _MIN_PROSE_SHARE * column.num_values


def is_text_id(column: ColumnProfile, max_counted: int) -> bool:
    """Returns whether nearly every row has its own text."""
    distinct = column.num_distinct
    if column.num_values <= _MIN_TO_COUNT:
        return False
    if distinct is None:
        return column.num_values < max_counted or is_called_id(column.name)
    return distinct > ID_SHARE * column.num_values


def is_row_number(column: ColumnProfile, min_rows: int) -> bool:
    """Returns whether an integer column holds each number of a range once, or unique ids."""
    distinct, low, high = column.num_distinct, column.minimum, column.maximum
    if low is None or high is None:
        return False
    unique = distinct is None or distinct == column.num_values
    consecutive = high - low + 1 == column.num_values and column.num_values > min_rows
    return unique and (consecutive or is_called_id(column.name))


def find_text_format(cells: ColumnCells) -> TextFormat | None:
    """Returns how a column of text writes whole numbers and booleans; None if it has neither."""
    import pyarrow.compute as pc

    widths: set[int] = set()
    booleans: set[str] = set()
    all_digits = no_zeros = True
    for values, _ in cells.chunks():
        numbers = values.filter(pc.match_substring_regex(values, PLAIN))
        widths.update(pc.utf8_length(numbers).unique().to_pylist())
        all_digits = all_digits and pc.all(pc.match_substring_regex(numbers, "^[0-9]+$")).as_py() is not False
        no_zeros = no_zeros and pc.all(pc.match_substring_regex(numbers, _WITHOUT_ZEROS)).as_py() is not False
        booleans.update(values.filter(pc.match_substring_regex(values, _TRUE_OR_FALSE)).unique().to_pylist())
    width = None
    if widths and all_digits and len(widths) == 1:
        (width,) = widths
    elif widths and no_zeros:
        width = 1
    words = sorted(booleans, key=str.lower)
    is_pair = [word.lower() for word in words] == ["false", "true"]
    if width is None and not is_pair:
        return None
    return TextFormat(width, (words[0], words[1]) if is_pair else None)
