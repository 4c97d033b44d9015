import dataclasses

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.page import render_report
from pipelines.report.sections.quality import _calibration_in_words, confusion_table, describe
from pipelines.report.words import NOTHING

from ..conftest import DETAILS, HOSTILE  # noqa: TID252
from ..html_checks import check_page  # noqa: TID252


def with_plots(context, **plots):
    details = {**DETAILS, "evaluation": {"plots": {"num_examples": 7, "classes": [], **plots}}}
    return Context(context.record, context.root, details, context.records)


def test_metrics_beside_the_baseline_plots_and_confusion(full):
    rows = describe(full)["metrics"]
    assert rows[0] == {
        "name": "auc", "value": "0.81", "interval": "0.77 to 0.85", "baseline": "0.75",
        "change": "+0.06",
    }  # fmt: skip
    assert rows[1]["interval"] == words.NOTHING
    found = describe(full)
    assert [plot.title for plot in found["plots"]] == [
        "ROC curve", "Precision and recall", "Calibration", "Predicted probabilities by class",
    ]  # fmt: skip
    assert "At a false positive rate of at most 10 %, the recall is 60 %." in (found["plots"][0].description)
    assert "Largest deviation: 70.0 % predicted, 60.0 % observed." in found["plots"][2].description
    first, second = found["confusion"]["rows"]
    assert found["confusion"]["classes"] == ["no", HOSTILE]
    assert [cell["text"] for cell in first["cells"]] == ["80", "25"]
    assert [cell["text"] for cell in second["cells"]] == ["15", "60"]
    # Recall 60 / 75, precision 60 / 85.
    assert (second["recall"], second["precision"]) == ("80.0 %", "70.6 %")


def test_thresholds_by_hand(full):
    """Of the 75 positives, the model's own threshold finds 60; of the curve's points, 0.7 finds 45."""
    cost = {"trainer": {"decide": {"cost": {"false_positive": 1, "false_negative": 20}}}}
    counts = DETAILS["evaluation"]["plots"]["model"]["confusion"]
    record = full.record.changed(config=cost, confusion={"classes": ["no", HOSTILE], **counts})
    context = Context(record, full.root, full.details, full.records)
    found = describe(context)["decision"]
    assert found["lines"] == [
        f"Positive class: {HOSTILE!r}, 41.7 % of the evaluation rows; predicted at p > 0.5 (a false positive "
        "costs 1, a false negative 20)",
        f"60 of 75 {HOSTILE!r} rows are found (recall 80 %); 60 of 85 rows predicted as {HOSTILE!r} are "
        f"right (precision 70.6 %); these errors cost 325, and always predicting {HOSTILE!r} 105",
    ]
    names = ("threshold", "recall", "precision", "false_positives", "false_negatives", "cost", "is_chosen")
    assert [tuple(row[name] for name in names) for row in found["rows"]] == [
        ("0.7", "60.0 %", "80.0 %", "11", "30", "611", False),  # 45 / 0.8 - 45 = 11.25
        ("0.5", "80.0 %", "70.6 %", "25", "15", "325", True),
        ("0", "100.0 %", "25.0 %", "225", "0", "225", False),
    ]
    assert found["rows"][1]["f1"] == "0.75"  # 120 / (120 + 25 + 15)
    page = render_report(context)
    check_page(page)
    assert "► 0.5" in page
    assert "Cost: 1 for a false positive, 20 for a false negative" in page
    assert describe(full)["decision"]["rows"][0]["cost"] == "41"  # 11 + 30: an error costs 1


def test_confusions_by_hand_and_in_words():
    rows = confusion_table(["a", "b", "2 other classes"], [[8, 2, 0], [0, 0, 0], [1, 2, 3]], True)["rows"]
    assert [cell["shade"] for cell in rows[0]["cells"]] == [7, 2, 0]  # 9 x 0.8 and 9 x 0.2
    assert (rows[0]["recall"], rows[0]["precision"]) == ("80.0 %", "88.9 %")  # 8/10, 8/9
    assert (rows[1]["recall"], rows[1]["precision"]) == (words.NOTHING, "0.0 %")
    assert rows[2]["recall"] == words.NOTHING  # several classes are no class
    #   predicted a, b, c, others; of the others no class is told
    table = [[8, 2, 0, 9], [1, 5, 2, 0], [0, 0, 7, 0], [9, 0, 0, 4]]
    found = confusion_table(["a", "b", "c", "5 other classes"], table, has_others=True)
    assert [(one["actual"], one["predicted"], one["count"], one["total"], one["share"])
            for one in found["largest"]] == [
        ("b", "c", "2", "8", "25 %"), ("a", "b", "2", "19", "11 %"), ("b", "a", "1", "8", "12 %"),
    ]  # fmt: skip
    assert [row["cells"][number]["is_right"] for number, row in enumerate(found["rows"])] == [
        True, True, True, False,
    ]  # fmt: skip
    two = confusion_table(["no", "yes"], [[8, 2], [1, 5]])
    assert (two["largest"], two["is_large"]) == ([], False)


def test_many_classes_are_a_heat_map_without_zeros(full):
    table = [[3 if label == answer else label for answer in range(7)] for label in range(7)]
    calibration = DETAILS["evaluation"]["plots"]["model"]["calibration"]
    classes = [f"class_{number}" for number in range(7)]
    confusion = {"classes": classes, "table": table, "has_others": False}
    context = with_plots(
        full, problem_type="multi-class", model={"confusion": confusion, "calibration": calibration}
    )
    page = check_page(render_report(context))
    (box,) = (one for one in page.all("div") if "heat" in one.get("class", ""))
    assert (box.get("tabindex"), box.get("role"), box.get("aria-labelledby")) == ("0", "region", "confusion")
    first, second, *_ = list(box.all("tr"))[1:]
    assert [one.text for one in first.all("td")] == ["3", *"000000", "3", "100.0 %", "12.5 %"]  # 3 of 24
    hidden = [one.text for one in first.all("span") if one.get("class") == "hidden"]
    assert hidden == list("000000")
    assert next(second.all("th")).text == "class_1"
    places = [one.text for one in page.all("li") if "was predicted as" in one.text]
    assert len(places) == 8
    assert places[0] == "class_6 was predicted as class_0: 6 of 39 (15 %)"


def test_the_classes_are_a_table_and_the_matrix_does_not_repeat_it(full):
    by_class = [
        {"name": "late", "rows": 12.0, "precision": 0.5, "recall": 0.25, "f1": 1 / 3},
        {"name": HOSTILE, "rows": 0.0, "precision": 0.0, "recall": None, "f1": 0.0},
    ]
    confusion = {"classes": ["late", HOSTILE], "table": [[3, 9], [0, 0]], "has_others": False}
    model = {"confusion": confusion, "by_class": by_class}
    page = check_page(render_report(with_plots(full, problem_type="multi-class", model=model)))
    table = next(one for one in page.all("table") if "F1" in one.text)
    rows = [[cell.text for cell in row.all("td")] for row in table.all("tr")][1:]
    assert rows == [["12", "50.0 %", "25.0 %", "33.3 %"], ["0", "0.0 %", NOTHING, "0.0 %"]]
    assert [next(row.all("th")).text for row in list(table.all("tr"))[1:]] == ["late", HOSTILE]
    matrix = next(one for one in page.all("table") if "actual" in one.text)
    assert "recall" not in matrix.text


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


def test_the_largest_deviation_leaves_out_small_groups_and_says_so():
    """Groups of 90, 90 and 6 examples have 62 on average; one of fewer than 31 deviates by chance."""
    rows = [
        {"weight": 90, "predicted": 0.9, "happened": 0.8},
        {"weight": 90, "predicted": 0.5, "happened": 0.5},
        {"weight": 6, "predicted": 0.3, "happened": 1.0},
    ]
    assert _calibration_in_words(rows) == (
        "Largest deviation of a group of at least 31 examples: 90.0 % predicted, 80.0 % observed."
    )
