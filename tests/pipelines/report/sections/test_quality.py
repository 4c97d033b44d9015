import dataclasses

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.sections.quality import confusion_table, describe

from ..conftest import DETAILS, HOSTILE  # noqa: TID252


def with_plots(context, **plots):
    details = {**DETAILS, "evaluation": {"plots": {"num_examples": 7, "classes": [], **plots}}}
    return Context(context.record, context.root, details, context.records)


def test_metrics_beside_the_baseline(full):
    rows = describe(full)["metrics"]
    assert rows[0] == {
        "name": "auc", "value": "0.81", "interval": "0.77 to 0.85", "baseline": "0.75",
        "change": "+0.06",
    }  # fmt: skip
    assert rows[1]["interval"] == words.NOTHING


def test_binary_plots_and_confusion(full):
    found = describe(full)
    assert [plot.title for plot in found["plots"]] == [
        "ROC curve", "Precision and recall", "Calibration", "Predicted probabilities by class",
    ]  # fmt: skip
    assert "At a false positive rate of at most 10 %, the recall is 60 %." in (
        found["plots"][0].description
    )
    assert "Largest deviation: 70.0 % predicted, 60.0 % observed." in found["plots"][2].description
    first, second = found["confusion"]["rows"]
    assert found["confusion"]["classes"] == ["no", HOSTILE]
    assert [cell["text"] for cell in first["cells"]] == ["80", "25"]
    assert [cell["text"] for cell in second["cells"]] == ["15", "60"]
    # Recall 60 / 75, precision 60 / 85.
    assert (second["recall"], second["precision"]) == ("80.0 %", "70.6 %")


def test_a_confusion_matrix_by_hand():
    rows = confusion_table(["a", "b", "2 other classes"], [[8, 2, 0], [0, 0, 0], [1, 2, 3]], True)[
        "rows"
    ]
    assert [cell["shade"] for cell in rows[0]["cells"]] == [7, 2, 0]  # 9 x 0.8 and 9 x 0.2
    assert (rows[0]["recall"], rows[0]["precision"]) == ("80.0 %", "88.9 %")  # 8/10, 8/9
    assert (rows[1]["recall"], rows[1]["precision"]) == (words.NOTHING, "0.0 %")
    assert rows[2]["recall"] == words.NOTHING  # several classes are no class


def test_multi_class_and_regression(full):
    calibration = DETAILS["evaluation"]["plots"]["model"]["calibration"]
    confusion = {"classes": ["x", "y"], "table": [[3, 1], [0, 2]], "has_others": False}
    found = describe(
        with_plots(full, problem_type="multi-class",
                   model={"confusion": confusion, "calibration": calibration})
    )  # fmt: skip
    assert [plot.title for plot in found["plots"]] == ["Calibration"]
    assert found["confusion"]["threshold"] is None
    model = {
        "sample_size": 7, "pairs": [[1.0, 1.5], [2.0, 1.75]],
        "residuals": {"counts": [1, 1], "edges": [-0.5, 0.0, 0.5]},
        "residual_quantiles": {"5 %": -0.25, "50 %": 0.125, "95 %": 0.5},
    }  # fmt: skip
    found = describe(with_plots(full, problem_type="regression", model=model))
    assert [plot.title for plot in found["plots"]] == ["Predicted against actual", "Residuals"]
    assert "The median is 0.125; 90 % are between -0.25 and 0.5." in found["plots"][1].description


def test_what_is_not_known_is_said(full, bare, failed):
    found = describe(with_plots(full, problem_type=None, model={}))
    assert found["missing"]
    assert describe(bare)["plots"] == []
    assert describe(failed) is None
    nothing = dataclasses.replace(bare.record, metrics={})
    assert describe(Context(nothing, bare.root)) is None
