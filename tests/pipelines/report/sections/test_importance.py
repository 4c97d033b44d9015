import pytest

from pipelines.report.context import Context
from pipelines.report.sections.importance import describe

from ..conftest import HOSTILE, RTL  # noqa: TID252


def test_features_by_what_the_loss_grows_or_why_there_are_none(full, bare, failed):
    found = describe(full)
    first, second = found["rows"]
    assert (first["name"], first["growth"], first["relative"]) == (HOSTILE, "+0.2", "+50 %")
    assert (first["bar"], first["is_clear"]) == (100, True)
    assert (second["name"], second["is_clear"]) == (RTL, False)
    assert second["bar"] == pytest.approx(25)
    assert (found["unused"], found["left_out"]) == (["paid"], ["late"])
    assert describe(bare)["missing"].startswith("Not recorded")
    keras = Context(full.record, full.root, {"evaluation": {"plots": {}}}, ())
    assert "evaluation model" in describe(keras)["missing"]
    assert describe(failed) is None


def test_a_loss_that_grows_many_times_is_no_share_of_itself(full):
    evaluation = full.details["evaluation"]
    leaky = {**evaluation["importance"], "loss": 0.009, "trivial_loss": 0.19}
    details = {"evaluation": {**evaluation, "importance": leaky}}
    found = describe(Context(full.record, full.root, details, ()))
    assert [row["relative"] for row in found["rows"]] == [
        "\N{MULTIPLICATION SIGN}23.2",
        "\N{MULTIPLICATION SIGN}6.56",
    ]
    assert (found["loss"], found["trivial_loss"]) == ("0.009", "0.19")
    assert describe(full)["trivial_loss"] is None  # of an older version


def test_the_largest_errors_of_a_class_and_of_a_number(full):
    of_class, of_number = describe(full)["worst"]
    assert (of_class["label"], of_class["towards"], of_class["loss"]) == (HOSTILE, RTL, "4.4")
    assert of_class["prediction"] == f"p({HOSTILE}) = 0.012"
    cells = [(part["column"], part["cell"], part["value"]) for part in of_class["contributions"]]
    assert cells == [(HOSTILE, HOSTILE, "+2.5"), ("paid", "[missing]", "\N{MINUS SIGN}0.75")]
    assert (of_number["prediction"], of_number["towards"]) == ("3", "the prediction")
    evaluation = full.details["evaluation"]
    older = {name: value for name, value in evaluation["importance"].items() if name != "worst"}
    details = {"evaluation": {**evaluation, "importance": older}}
    assert describe(Context(full.record, full.root, details, ()))["worst"] == []
