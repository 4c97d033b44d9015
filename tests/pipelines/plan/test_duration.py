import pytest

from pipelines.plan.duration import preparation_note, preparation_secs


def test_a_small_table_has_no_note():
    assert preparation_note(15_000, 18) is None


@pytest.mark.parametrize(("num_rows", "num_columns"), [(10_000_000, 18), (64, 10_000)])
def test_a_long_or_a_wide_table_has_one(num_rows, num_columns):
    minutes = round(preparation_secs(num_rows, num_columns) / 60)
    note = preparation_note(num_rows, num_columns)
    assert f"{num_rows:,} rows of {num_columns:,} columns" in note
    assert f"about {minutes} minutes" in note


def test_twice_the_columns_take_at_most_twice_the_time():
    assert preparation_secs(64, 20_000) < 2 * preparation_secs(64, 10_000)
