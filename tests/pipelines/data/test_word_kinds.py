import pytest

from pipelines.data.formats.cell_format import TextFormat
from pipelines.data.word_kinds import (
    boolean_words,
    find_text_format,
    is_called_id,
    is_free_text,
    is_row_number,
    is_text_id,
    why_code,
)
from tests.pipelines.data.tables import column_of


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["Yes", "no", "YES", "NA"], ("yes", "no")),
        (["t", "F"], ("t", "f")),
        (["on", "off"], ("on", "off")),
        (["yes", "yes"], None),
        (["yes", "no", "maybe"], None),
        (["yes", "off"], None),
    ],
)
def test_booleans_in_words(tmp_path, cells, words):
    assert boolean_words(column_of(tmp_path, "a", cells)[0]) == words


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("a", ["02134", "10001"], "a code: leading zeros"),
        ("zip", ["12134", "10001"], "a code by its name"),
        ("shipZip", ["12134", "10001"], "a code by its name"),
        ("census_tract", ["17031839100", "17031839101"], "a code by its name"),
        ("zip_distance", ["12", "100"], None),  # too short for a code
        ("customer_id", ["7", "7", "8"], "ids that repeat"),
        ("amount", ["12134", "10001"], None),
        ("zipper", ["12134", "10001"], None),
        ("a", ["0", "10"], None),
        ("zip", ["1.5", "2.5"], None),
    ],
)
def test_digits_that_are_codes(tmp_path, name, cells, why):
    assert why_code(*column_of(tmp_path, name, cells)) == why


def test_free_text_ids_and_row_numbers(tmp_path):
    texts = [f"the order {number} came late" for number in range(60)]
    assert is_free_text(*column_of(tmp_path, "a", texts))
    assert not is_free_text(*column_of(tmp_path, "a", texts[:19]))
    assert not is_free_text(*column_of(tmp_path, "a", texts[:25] * 4))  # a quarter is distinct
    assert not is_free_text(*column_of(tmp_path, "a", [f"order {number}" for number in range(60)]))
    assert is_called_id("customer_id")
    assert is_called_id("rowId")
    assert not is_called_id("idle")
    assert is_text_id(column_of(tmp_path, "a", [f"u{number}" for number in range(101)])[0], 1)
    assert not is_text_id(column_of(tmp_path, "a", [f"u{number}" for number in range(100)])[0], 1)
    repeated = [f"u{number % 90}" for number in range(101)]
    assert not is_text_id(column_of(tmp_path, "a", repeated)[0], 1)
    assert is_row_number(column_of(tmp_path, "a", range(5, 30))[0], 20)
    assert not is_row_number(column_of(tmp_path, "a", range(5, 15))[0], 20)
    assert not is_row_number(column_of(tmp_path, "a", range(5, 60, 2))[0], 20)
    assert is_row_number(column_of(tmp_path, "id", range(5, 60, 2))[0], 20)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["00501", "12345", "SW1A", "NA"], TextFormat(width=5)),
        (["7", "12", "x", "-3", "0"], TextFormat(width=1)),
        (["7", "9", "x"], TextFormat(width=1)),
        (["007", "12"], None),  # is 5 written 5 or 005?
        (["7", "7.0", "x"], None),
        (["12", "1e2", "x"], None),
        (["12", "+5", "x"], None),
        (["Oslo", "12 b"], None),
        (["TRUE", "FALSE", "TRUE"], TextFormat(booleans=("FALSE", "TRUE"))),
        (["true", "False", "maybe", "3"], TextFormat(1, ("False", "true"))),
        (["true", "True", "false"], None),
        (["true", "maybe"], None),
        (["NA", ""], None),
    ],
)
def test_how_a_column_of_text_writes_whole_numbers_and_booleans(tmp_path, cells, expected):
    assert find_text_format(column_of(tmp_path, "a", cells)[1]) == expected
