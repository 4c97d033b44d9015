import pytest

from pipelines.report.sections.slices import describe

from ..conftest import RTL  # noqa: TID252


def test_slices_with_their_intervals_and_whiskers(full, bare, failed):
    found = describe(full)
    assert (found["metric"], found["others"]) == ("auc", ["example_count"])
    everything, first, second = found["rows"]
    assert (everything["name"], everything["size"], everything["interval"]) == (
        "All examples", "300", "0.77 to 0.85",
    )  # fmt: skip
    assert (first["name"], first["size"], first["interval"]) == (
        f"city:{RTL}", "60", "0.6 to no bound",
    )  # fmt: skip
    assert second["whisker"] is None  # it has no value
    place = describe(full)["rows"][1]["whisker"]
    assert place["at"] == pytest.approx(2 + 96 * 0.4)
    assert (place["low"], place["high"]) == (2, 100)  # no upper end: to the border
    found = describe(bare)
    assert found["missing"]
    assert found["rows"][1]["whisker"]["has_interval"] == 0
    assert describe(failed) is None


def test_a_slice_of_a_few_examples_has_an_interval_of_possible_values(full):
    """Student's t reaches beyond 1; the scale then ends at 1."""
    full.details["evaluation"]["slices"]["slices"][f"city:{RTL}"]["intervals"]["auc"] = [-0.7, 1.5]
    row = describe(full)["rows"][1]
    assert row["interval"] == "0 to 1"
    assert (row["whisker"]["low"], row["whisker"]["high"]) == (2, 98)
