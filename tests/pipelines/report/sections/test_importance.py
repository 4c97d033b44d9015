import pytest

from pipelines.report.context import Context
from pipelines.report.sections.importance import describe

from ..conftest import HOSTILE, RTL  # noqa: TID252


def test_features_by_what_the_loss_grows(full):
    found = describe(full)
    first, second = found["rows"]
    assert (first["name"], first["growth"], first["share"]) == (HOSTILE, "+0.2", "50.0 %")
    assert (first["bar"], first["is_clear"]) == (100, True)
    assert (second["name"], second["is_clear"]) == (RTL, False)
    assert second["bar"] == pytest.approx(25)
    assert (found["unused"], found["left_out"]) == (["paid"], ["late"])


def test_why_there_are_none(full, bare, failed):
    assert describe(bare)["missing"].startswith("Not recorded")
    keras = Context(full.record, full.root, {"evaluation": {"plots": {}}}, ())
    assert "evaluation model" in describe(keras)["missing"]
    assert describe(failed) is None
