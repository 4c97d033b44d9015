import random

import pytest

from pipelines.config.data import SplitConfig
from pipelines.data import row_sample
from pipelines.data.kinds import recognise_columns
from pipelines.data.pitfalls import find_pitfalls
from pipelines.data.profile import profile_csv
from tests.pipelines.data.tables import write_table

DRAW = random.Random(1)
NUM = 400
PRICES = [f"{row * 7 % NUM}.25" for row in range(NUM)]
CITIES = [DRAW.choice(("Oslo", "Rome", "Bern")) for _ in range(NUM)]
DAYS = [f"2024-{row // 28 + 1:02d}-{row % 28 + 1:02d}" for row in range(NUM - 100)]


@pytest.fixture
def pitfalls(tmp_path):
    """Returns a function that finds the pitfalls of a table given as {name: cells}; its label is `y`."""

    def find(columns, **split):
        profile = profile_csv([write_table(tmp_path, columns)])
        return [*find_pitfalls(profile, recognise_columns(profile, {}), SplitConfig(**split), "y")]

    return find


def with_copies(columns, num):
    """Returns a table, followed by its first rows again."""
    return {name: [*cells, *cells[:num]] for name, cells in columns.items()}


@pytest.mark.parametrize("max_rows", [50_000, 100])  # 100: every eighth row of 420 is in the sample
def test_copies_of_rows(pitfalls, monkeypatch, max_rows):
    monkeypatch.setattr(row_sample, "MAX_ROWS", max_rows)
    table = with_copies({"price": PRICES, "city": CITIES}, 20)
    (found,) = pitfalls(table)
    assert found.startswith(
        "20 of 420 rows are copies of other rows, so a model may be evaluated on rows that "
    )
    assert pitfalls(with_copies({"price": PRICES, "city": CITIES}, 4)) == []
    # Where copies stay together, and where the user has chosen.
    assert pitfalls(table, by="column", column="city") == []
    assert pitfalls(table, by="row") == []
    assert len(pitfalls(table, test=0.2)) == 1


def test_rows_that_are_equal_by_chance(pitfalls, monkeypatch):
    grades = [[DRAW.randrange(1, 9) for _ in range(3_000)] for _ in range(3)]
    table = dict(zip("aby", grades, strict=True))
    # 512 different rows are possible: more than 2,400 of the 3,000 are copies.
    assert pitfalls(table) == []
    monkeypatch.setattr(row_sample, "MAX_ROWS", 1_000)
    assert pitfalls(table) == []
    rare = {name: [int(DRAW.random() < 0.1) for _ in range(NUM)] for name in "abc"}
    assert pitfalls(rare) == []  # most rows are zeros alone


def test_copies_in_a_table_with_few_different_rows_but_for_one_column(pitfalls):
    prices = [*PRICES[:390], *PRICES[:10]]
    shops = [DRAW.randrange(30) for _ in range(NUM)]
    # About 2,660 of the 79,800 pairs of rows have the same shop, and 10 of 79,800 the same price: chance
    # explains less than one pair of copies.
    table = {"price": prices, "shop": shops}
    assert pitfalls(table) == []
    assert len(pitfalls(with_copies(table, 20))) == 1


PEOPLE = [f"{DRAW.randrange(10**9):09d}" for _ in range(NUM)]
REPEATED = [*PEOPLE[:376], *PEOPLE[:24]]


@pytest.mark.parametrize(
    ("name", "cells", "share"),
    [
        ("customer", REPEATED, "12%"),  # 48 of 400 rows
        ("customerId", REPEATED, "12%"),
        ("policy", [f"C-{cell}" for cell in REPEATED], "12%"),  # a code by its cells
        ("policy", [f"No {cell}" for cell in REPEATED], None),
        ("amount", REPEATED, None),
        ("customer", PEOPLE, None),
        ("customer_score", REPEATED, None),
        ("customer", [*PEOPLE[:398], *PEOPLE[:2]], "1%"),
        ("customer", [*PEOPLE[:399], PEOPLE[0]], None),
        ("patient_id", [f"p{row % 20}" for row in range(NUM)], "100%"),
        ("patient_id", [f"p{row % 19}" for row in range(NUM)], None),
        ("customer", [f"{cell}.5" for cell in REPEATED], None),
        ("y", [f"C-{cell}" for cell in REPEATED], None),  # the label
    ],
)
def test_ids_that_repeat(pitfalls, name, cells, share):
    found = pitfalls({name: cells, "price": PRICES})
    if share is None:
        assert found == []
    else:
        (text,) = found
        assert text.startswith(f"column {name!r}: {share} of the rows repeat the value of another row")
        assert text.endswith(f'[split] by = "column", column = "{name}"')


def test_an_id_of_many_rows_is_a_category_unless_it_is_a_person_or_too_many_to_count(pitfalls):
    for num_rows, names in ((2_000, ["shop_id", "patient"]), (2_020, ["patient"])):
        ids = [f"p{row % 20}" for row in range(num_rows)]
        found = pitfalls({"shop_id": ids, "patient": ids, "price": range(num_rows)})
        assert [text.split("'")[1] for text in found] == names
    ids = [f"{number:09d}" for number in range(20_000)]
    (found,) = pitfalls({"device": [*ids, *ids[:5_000]], "x": range(25_000)})
    assert found.startswith("column 'device': 40% of the rows")
    assert pitfalls({"device": [*ids, *(f"a{number}" for number in ids)], "x": range(40_000)}) == []


@pytest.mark.parametrize(
    ("days", "is_sorted"),
    [
        (DAYS, True),
        (DAYS[::-1], True),
        ([*DAYS[1:20], DAYS[0], *DAYS[20:]], True),
        ([*DAYS[:150], *[""] * 20, *DAYS[170:]], True),
        ([f" {day} " for day in DAYS], True),
        (random.Random(1).sample(DAYS, len(DAYS)), False),
        (DAYS[::3] + DAYS[1::3] + DAYS[2::3], False),  # the days of three shops, one after the other
        (sorted(DAYS[row % 19] for row in range(len(DAYS))), False),
    ],
)
def test_rows_in_the_order_of_time(pitfalls, days, is_sorted):
    found = pitfalls({"sold at": days, "price": PRICES[: len(days)]})
    advice = 'evaluate it on the newest rows: [split] by = "time", column = "sold at"'
    text = f"the rows are sorted by 'sold at'. If the model has to predict later rows, {advice}"
    assert found == ([text] if is_sorted else [])
    assert pitfalls({"sold at": days, "price": PRICES[: len(days)]}, by="time", column="sold at") == []


def test_categories_that_are_spelled_in_several_ways(pitfalls):
    plans = ["Basic"] * 5 + ["basic "] * 3 + ["BASIC"] * 2 + ["Pro  max", "Pro max", "Free"]
    columns = {"plan": plans, "vip": ["Yes", "no", "yes", "NO"] * 3 + ["no"], "price": PRICES[:13]}
    (found,) = pitfalls(columns, by="row")
    assert found.startswith(
        "column 'plan': 'Basic' (5) and 'basic' (3) and 'BASIC' (2); 'Pro  max' (1) and 'Pro max' (1) differ "
        "only in case or white space, but are different categories."
    )
    many = [f"{letter}{number}" for number in range(4) for letter in "aAbB"]
    (found,) = pitfalls({"code": [*many, *many], "price": PRICES[:32]})
    assert "; 'a1' (2) and 'A1' (2); and 5 more differ" in found
    codes = [f"{letter}{number}" for number in range(1_001) for letter in "aA"]
    assert pitfalls({"code": [*codes, *codes], "price": range(4_004)}) == []
