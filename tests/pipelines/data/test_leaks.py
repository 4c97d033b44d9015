import random

import pytest

from pipelines.data import row_sample
from pipelines.data.kinds import recognise_columns
from pipelines.data.leaks import find_leaks
from pipelines.data.profile import profile_csv
from tests.pipelines.data.tables import write_table

NUM = 1_200


def leaks_of(folder, columns, label="y", is_regression=False):
    profile = profile_csv([write_table(folder, columns)])
    names = tuple(name for name in columns if name != label)
    found = find_leaks(profile, recognise_columns(profile, {}), label, is_regression, names)
    return {leak.column: leak for leak in found}


@pytest.fixture
def classes():
    draw = random.Random(1)
    label = [draw.choice(("no", "no", "yes")) for _ in range(NUM)]
    wrong = set(range(0, NUM, 400))  # 3 of 1,200 rows
    return {
        "copy": ["declined" if value == "no" else "approved" for value in label],
        "near": [value.upper() if row not in wrong else "?" for row, value in enumerate(label)],
        "only if yes": [
            f"2014-01-{row % 28 + 1:02d}" if value == "yes" else "" for row, value in enumerate(label)
        ],
        "split number": [draw.uniform(0, 1) + (value == "yes") * 1.001 for value in label],
        "good": [draw.gauss(0, 1) + 3 * (value == "yes") for value in label],
        "id": [f"u{row}" for row in range(NUM)],
        "noise": [draw.choice("abc") for _ in range(NUM)],
        "y": label,
    }  # fmt: skip


def test_a_column_that_says_the_class_by_itself_is_found(tmp_path, classes):
    found = leaks_of(tmp_path, classes)
    assert set(found) == {"copy", "near", "only if yes", "split number"}
    assert [name for name, leak in found.items() if leak.is_copy] == ["copy"]
    share = classes["y"].count("no") / NUM
    assert found["copy"].evidence == (
        "column 'copy' alone predicts 'y' correctly in 100 % of 1200 rows "
        f"(the most frequent class alone: {share:.1%})"
    )
    # "?" counts as missing: the rows with it are predicted as the more frequent of their classes.
    assert "correctly in 99." in found["near"].evidence


def test_a_sample_of_many_rows_is_enough(tmp_path, classes, monkeypatch):
    monkeypatch.setattr(row_sample, "MAX_ROWS", 500)
    found = leaks_of(tmp_path, classes)
    assert "of 300 rows" in found["copy"].evidence  # every fourth row
    assert {"copy", "only if yes"} <= set(found)
    assert not {"good", "id", "noise"} & set(found)


def test_a_number_that_goes_with_the_label_is_found(tmp_path):
    draw = random.Random(2)
    label = [draw.gauss(10, 3) for _ in range(NUM)]
    found = leaks_of(
        tmp_path,
        {
            "same": [f"${value:.12f}" if value >= 0 else f"-${-value:.12f}" for value in label],
            "cents": [100 * value + 3 for value in label],
            "cube": [value**5 for value in label],
            "near": [value + draw.gauss(0, 0.3) for value in label],
            "word": [f"w{value:.0f}" for value in label],
            "y": [f"{value:.12f}" for value in label],
        },
        is_regression=True,
    )
    assert set(found) == {"same", "cents", "cube"}
    assert [name for name, leak in found.items() if leak.is_copy] == ["same"]
    assert "equals 'y' in all 1200 rows" in found["same"].evidence
    assert "linear function of 'y' (correlation 1.00000)" in found["cents"].evidence
    assert "orders the rows as 'y' does (rank correlation 1.00000)" in found["cube"].evidence


def test_a_column_that_is_filled_in_after_the_fact_is_found_by_its_gaps(tmp_path):
    draw = random.Random(3)
    label = [draw.choice(("no", "no", "no", "yes")) for _ in range(NUM)]
    rows = [(value == "yes", draw.random(), row) for row, value in enumerate(label)]
    found = leaks_of(
        tmp_path,
        {
            "date": [f"2014-01-{n % 28 + 1:02d}" if yes and u < 0.97 else "" for yes, u, n in rows],
            "reason": [draw.choice("abc") if yes and u < 0.8 else "" for yes, u, _ in rows],
            "survey": ["" if yes and u < 0.8 else n % 11 for yes, u, n in rows],
            # It leaves 0.3 of the class with a quarter of the rows and 0.05 of the other: 45 % of the error.
            "complaint": [n % 7 if u < (0.7 if yes else 0.05) else "" for yes, u, n in rows],
            "test": [n % 7 if u < (0.6 if yes else 0.15) else "" for yes, u, n in rows],
            "empty": ["" for _ in rows],
            "y": label,
        },
    )
    assert set(found) == {"date", "reason", "survey", "complaint"}
    assert found["date"].evidence.startswith("whether column 'date' is empty predicts 'y' correctly in 98.")
    assert not any(leak.is_copy for leak in found.values())


def test_gaps_tell_a_number(tmp_path):
    draw = random.Random(4)
    paid = [draw.random() < 0.3 for _ in range(NUM)]
    label = [draw.gauss(900, 200) if is_paid else 0.0 for is_paid in paid]
    found = leaks_of(
        tmp_path,
        {
            "paid at": [f"2014-01-{n % 28 + 1:02d}" if is_paid else "" for n, is_paid in enumerate(paid)],
            "asked at": [f"2014-01-{n % 28 + 1:02d}" if n % 3 else "" for n in range(NUM)],
            "y": [f"{value:.2f}" for value in label],
        },
        is_regression=True,
    )
    assert set(found) == {"paid at"}
    assert "is empty explains 9" in found["paid at"].evidence


def test_too_few_rows_prove_nothing(tmp_path):
    rows = {"a": ["p"] * 100 + ["q"] * 19, "y": [0] * 100 + [1] * 19}
    assert leaks_of(tmp_path, rows) == {}
    rows = {"a": ["p"] * 100 + ["q"] * 20, "y": [0] * 100 + [1] * 20}
    assert set(leaks_of(tmp_path, rows)) == {"a"}
