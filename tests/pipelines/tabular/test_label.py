import pytest

from pipelines.config.load import load_config
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.tabular.infer import infer_kinds
from pipelines.tabular.label import check_label_column, plan_label


def label_of(folder, cells, *settings, name="y"):
    file = folder / "data.csv"
    file.write_text("".join(f'"{cell}"\n' for cell in (name, *cells)))
    profile = profile_csv([file])
    config = load_config(data=str(file), label=name, settings=settings)
    column = check_label_column(profile, name)
    return plan_label(profile, column, config.data, infer_kinds(profile, config)[name])


def test_amounts_and_plain_numbers_are_predicted_and_words_are_classes(tmp_path):
    label = label_of(tmp_path, ["$1,001.00", "$1,003.00"] * 20)
    assert (label.problem_type, label.number_format) == ("regression", NumberFormat(".", "USD"))
    assert (label.mean, label.stddev) == pytest.approx((1_002, 1))
    label = label_of(tmp_path, ["$1,001.00", "$1,003.00"] * 20, "data.problem_type=binary")
    assert (label.problem_type, label.number_format) == ("binary", None)
    assert label.classes == ("$1,001.00", "$1,003.00")
    assert label_of(tmp_path, ["Yes", "No"] * 20).classes == ("No", "Yes")
    assert label_of(tmp_path, ["YES", "no"] * 20).classes == ("no", "YES")
    assert label_of(tmp_path, ["ja", "nein"] * 20).classes == ("nein", "ja")
    assert label_of(tmp_path, ["ja", "nein"] * 20, "data.positive=nein").classes == ("ja", "nein")
    assert label_of(tmp_path, ["ja", "no"] * 20).classes == ("ja", "no")
    assert label_of(tmp_path, [0.5, 1.5] * 20).number_format is None
    with pytest.raises(BadInputError, match="every label is '1'"):
        label_of(tmp_path, [1] * 40)
    label = label_of(tmp_path, list(range(30)) * 2, "columns.y=category")
    assert (label.problem_type, label.classes[:2]) == ("multi-class", ("0", "1"))
    stars = label_of(tmp_path, [1, 2, 3, 4, 5] * 9, "columns.y=number")
    assert (stars.problem_type, stars.mean) == ("regression", 3)
    label = label_of(tmp_path, ["007", "7", "10"] * 9)
    assert (label.problem_type, label.classes, label.values) == ("multi-class", ("007", "10", "7"), "text")
    label = label_of(tmp_path, ["02", "10"] * 15, "columns.y=category", "data.positive='02'")
    assert label.classes == ("10", "02")
    assert label_of(tmp_path, list(map("{:03}".format, range(30)))).problem_type == "regression"


def test_text_that_looks_like_numbers_is_asked_about(tmp_path):
    """Neither reading is taken by default."""
    amounts = [f"${number}" for number in range(1, 31)] + [f"€{number}" for number in range(1, 31)]
    with pytest.raises(BadInputError) as error:
        label_of(tmp_path, amounts)
    assert "the label has 60 different values, such as '$1', that look like numbers" in str(error.value)
    assert "30 of 60 cells do not fit the others (amounts of money (USD)), the first: " in str(error.value)
    assert '[columns] y = "number" predicts a number, "category" one of 60 classes' in str(error.value)
    label = label_of(tmp_path, amounts, "columns.y=category")
    assert (label.problem_type, len(label.classes)) == ("multi-class", 60)
    with pytest.raises(BadInputError, match=r"line 32: '€1' is not a number, nor are 29 others of 60"):
        label_of(tmp_path, amounts, "columns.y=number")
    terms = ["36 months", "60 months"] * 20
    with pytest.raises(BadInputError, match=r"2 different values, such as '36 months', .*in months"):
        label_of(tmp_path, terms)
    label = label_of(tmp_path, terms, "columns.y=number")
    assert (label.problem_type, label.mean) == ("regression", 48)
    assert label_of(tmp_path, terms, "columns.y=category").classes == ("36 months", "60 months")
    assert label_of(tmp_path, [f"{age}-{age + 9}" for age in range(0, 90, 10)] * 5).classes
    with pytest.raises(BadInputError, match=r'\[columns\] "Lease term" = "number" predicts'):
        label_of(tmp_path, terms, name="Lease term")


def test_labels_that_are_no_numbers_among_amounts_are_counted(tmp_path):
    amounts = [f"€{number}" for number in range(1, 201)]
    with pytest.raises(BadInputError, match="'free' is not a number, nor are 2 others, while 200 are"):
        label_of(tmp_path, [*amounts, "free", "gone", "free"])
    with pytest.raises(BadInputError, match="'free' is not a number, nor is 1 other, while 200 are"):
        label_of(tmp_path, [*range(200), "free", "gone"])
    label = label_of(tmp_path, [f"€{number / 10}M" for number in range(1, 41)])
    assert (label.problem_type, label.mean) == ("regression", pytest.approx(2_050_000))
    with pytest.raises(BadInputError, match=r"line 42, .*the label 'free' is not a number, while 40"):
        label_of(tmp_path, [*(f"€{number}M" for number in range(1, 41)), "free"])
