import pytest

from pipelines.config.load import load_config
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.tabular.infer import infer_kinds
from pipelines.tabular.label import check_label_column, plan_label


def label_of(folder, cells, *settings):
    file = folder / "data.csv"
    file.write_text("".join(f'"{cell}"\n' for cell in ("y", *cells)))
    profile = profile_csv([file])
    config = load_config(data=str(file), label="y", settings=settings)
    column = check_label_column(profile, "y")
    return plan_label(profile, column, config.data, infer_kinds(profile, config)["y"])


def test_amounts_of_money_are_numbers_to_predict(tmp_path):
    label = label_of(tmp_path, ["$1,001.00", "$1,003.00"] * 20)
    assert (label.problem_type, label.decimal) == ("regression", ".")
    assert (label.mean, label.stddev) == pytest.approx((1_002, 1))
    label = label_of(tmp_path, ["$1,001.00", "$1,003.00"] * 20, "data.problem_type=binary")
    assert (label.problem_type, label.decimal) == ("binary", None)
    assert label.classes == ("$1,001.00", "$1,003.00")


def test_words_are_classes_and_plain_numbers_have_no_format(tmp_path):
    assert label_of(tmp_path, ["Yes", "No"] * 20).classes == ("No", "Yes")
    assert label_of(tmp_path, [0.5, 1.5] * 20).decimal is None
    with pytest.raises(BadInputError, match="every label is '1'"):
        label_of(tmp_path, [1] * 40)
