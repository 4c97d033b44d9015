import re

import pytest

from pipelines.report.sections.data import category_plot, column_rows, describe, label_table, number_plot

from ..conftest import HOSTILE, RTL  # noqa: TID252


def test_a_row_for_each_column(full, bare):
    rows = {row["name"]: row for row in describe(full)["rows"]}
    assert list(rows) == [HOSTILE, RTL, "paid"]
    assert rows[HOSTILE]["missing"] == 0.125  # of the plan; the statistics count 30 of 300 empty cells
    assert rows[HOSTILE]["summary"] == "mean 2.5, from 0 to 10"
    assert rows[RTL]["summary"] == f"3 values, most often {HOSTILE}"
    assert rows["paid"]["plot"] is None  # an empty histogram
    assert describe(bare)["rows"][0]["missing"] == 0.125  # of the record


def parsed(quantity, **values):
    """Returns the statistics of a column of text, with those of its values."""
    numbers = {"mean": 5.5, "std_dev": 2.0, "min": 1.0, "median": 5.0, "max": 11.0, "zeros": 3}
    found = {"quantity": quantity, "missing": 7, **numbers, "histogram": [[1.0, 11.0, 93.0]], **values}
    top = [["$5.00", 60.0], ["N/A", 40.0]]
    split = {"missing": 0, "values": 100, "unique": 2, "length": 5.0, "top": top, "parsed": found}
    return {"splits": {"train": 100}, "columns": [{"name": "c", "type": "text", "splits": {"train": split}}]}


def test_cells_are_shown_as_numbers_dates_or_categories():
    (row,) = column_rows([{"name": "c", "kind": "number"}], parsed("numbers"))
    assert row["summary"] == "mean 5.5, from 1 to 11"
    assert ("missing", "7") in row["details"][0]["values"]
    assert row["plot"]["text"] == "from 1 to 11"
    (row,) = column_rows([{"name": "c", "kind": "date"}], parsed("days"))
    assert row["summary"] == "mean 1970-01-06, from 1970-01-02 to 1970-01-12"
    assert row["plot"]["text"] == "from 1970-01-02 to 1970-01-12"
    assert [name for name, _ in row["details"][0]["values"]] == [
        "mean", "standard deviation, days", "minimum", "median", "maximum", "missing",
    ]  # fmt: skip
    (row,) = column_rows([{"name": "c", "kind": "category"}], parsed("numbers"))
    assert row["summary"] == "2 values, most often $5.00"


@pytest.mark.parametrize(
    ("number_format", "cells", "summary", "deviation"),
    [
        ({"currency": "EUR"}, ["5 €"], "mean 5.5 EUR, from 1 EUR to 11 EUR", "2 EUR"),
        ({"decimal": ","}, ["5 %", "100%"], "mean 550 %, from 100 % to 1,100 %", "200 %"),
        ({"decimal": ","}, ["5 %", "1"], "mean 5.5, from 1 to 11", "2"),
        ({"unit": "kg"}, ["5 kg"], "mean 5.5 kg, from 1 kg to 11 kg", "2 kg"),
        ({"scale": "length"}, ["5 ft"], "mean 5.5 metres, from 1 metres to 11 metres", "2 metres"),
        ({"scale": "multiples"}, ["5K"], "mean 5.5, from 1 to 11", "2"),
        ({"scale": "time"}, ["5 s"], "mean 5.5 s, from 1.0 s to 11.0 s", "2.0 s"),
        ({"clock": "h:mm"}, ["0:01"], "mean 0:00:06, from 0:00:01 to 0:00:11", "2.0 s"),
    ],
)
def test_numbers_are_shown_as_the_plan_reads_the_cells(number_format, cells, summary, deviation):
    statistics = parsed("numbers")
    statistics["columns"][0]["splits"]["train"]["top"] = [[cell, 9.0] for cell in cells]
    (row,) = column_rows([{"name": "c", "kind": "number", "number_format": number_format}], statistics)
    assert row["summary"] == summary
    assert dict(row["details"][0]["values"])["standard deviation"] == deviation


def test_years_have_no_marks_between_thousands():
    split = {"mean": 1996.7, "std_dev": 15.2, "min": 1971.0, "median": 1997.0, "max": 2023.0,
             "zeros": 0, "missing": 0, "histogram": [[1971.0, 2023.0, 9.0]]}  # fmt: skip
    statistics = {
        "splits": {"train": 9},
        "columns": [{"name": "c", "type": "whole numbers", "splits": {"train": split}}],
    }
    (row,) = column_rows([{"name": "c", "kind": "number"}], statistics)
    assert row["summary"] == "mean 1997, from 1971 to 2023"
    split["max"] = 20_230.0
    (row,) = column_rows([{"name": "c", "kind": "number"}], statistics)
    assert row["summary"] == "mean 1,997, from 1,971 to 20,230"


def test_a_count_of_values_is_given_once():
    split = {"unique": 5, "top": [["b", 4.0], ["NA", 2.0]], "missing": 0}
    statistics = {"columns": [{"name": "c", "splits": {"train": split}}], "splits": {"train": 20}}
    (row,) = column_rows([{"name": "c", "kind": "category", "use": "category (4 values)"}], statistics)
    assert row["summary"] == "most often b"


def test_a_histogram_by_hand():
    """Train: [10, 15) has two thirds, [15, 20) one. Eval lies in [11, 16) alone, and is as dense as 1/5.

    Densities: train 2/3/5 = 0.1333 and 0.0667, eval 0.2, which is the top of a drawing 34 high: the floor is
    at 33, the top at 1.
    """
    plot = number_plot({"train": [[10, 15, 120], [15, 20, 60]], "eval": [[11, 16, 90]]})
    bars = [float(value) for value in re.findall(r"-?[\d.]+", plot["bars"])]
    assert bars == pytest.approx([0, 33, 33 - 32 * 2 / 3, 60, 33, 60, 33, 33 - 32 / 3, 120, 33], abs=0.01)
    outline = [float(value) for value in re.findall(r"-?[\d.]+", plot["outline"])]
    assert outline == pytest.approx([12, 33, 1, 72], abs=0.01)
    assert plot["text"] == "from 10 to 20"


def test_shares_of_categories_one_value_and_none():
    """Of train a has 3/4 and b 1/4; of eval b has all, which is the top."""
    plot = category_plot({"train": [["a", 6], ["b", 2]], "eval": [["b", 5]]})
    heights = [float(value) for value in re.findall(r"V([\d.]+)H", plot["bars"])]
    assert heights == pytest.approx([33 - 32 * 0.75, 33 - 32 * 0.25])
    assert [float(value) for value in re.findall(r"M[\d.]+ ([\d.]+)H", plot["outline"])] == [33, 1]
    assert number_plot({"train": [[3, 3, 9]]})["text"] == "one value"
    assert number_plot({"train": []}) is None
    assert category_plot({"train": []}) is None
    assert category_plot({"train": [["a", 6]]})["text"] == "the most frequent value"


def test_the_label_is_described_by_shares_or_quantiles(full):
    found = describe(full)["label"]
    assert found["rows"] == [("no", ["75.0 %", "70.0 %"]), (HOSTILE, ["25.0 %", "30.0 %"])]
    assert found["splits"] == [("train", 200), ("eval", 100)]
    numbers = {"column": "y", "test": "Kolmogorov-Smirnov", "p_value": 0.5, "distance": 0.1,
               "sizes": {"train": 4, "eval": 2},
               "shares": {"train": {"0 %": 1.0, "50 %": 20.0},
                          "eval": {"0 %": 2.0, "50 %": 21.5}}}  # fmt: skip
    assert label_table(numbers)["rows"] == [("0 %", ["1", "2"]), ("50 %", ["20", "21.5"])]


def test_the_plan_counts_missing_cells_of_all_spellings():
    """The statistics see `N/A` as a value: 1 of 20 cells is empty, and 4 say `N/A`."""
    split = {"unique": 3, "top": [["N/A", 4], ["$5", 3], ["$7", 2]], "missing": 1}
    statistics = {"columns": [{"name": "rent", "splits": {"train": split}}], "splits": {"train": 20}}
    planned = {"name": "rent", "kind": "number", "use": "number", "missing_share": 0.25}
    (row,) = column_rows([planned], statistics)
    assert row["missing"] == 0.25
    assert row["summary"] == "3 values, most often $5"
    (row,) = column_rows([], statistics)  # a module of one's own has no plan
    assert row["missing"] == 0.05
