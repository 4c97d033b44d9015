import pytest

from estimator_core.summaries import INPUT_WAIT
from pipelines.report.sections.training import curve_plots, describe, models_table, waiting_in_words

from ..conftest import HOSTILE  # noqa: TID252


def curve(tag, run="", points=((1, 0.5), (70, 0.25))):
    return {"run": run, "tag": tag, "points": [list(point) for point in points]}


def test_training_and_evaluation_share_a_plot(full):
    found = describe(full)
    assert [plot.title for plot in found["plots"]] == ["loss", HOSTILE]
    assert found["plots"][0].description == (
        "loss by step. training: from 0.9 at step 1 to 0.4 at step 70; evaluation: from 1 at step 1 to 0.6 "
        "at step 70."
    )
    plots, others = curve_plots(
        [curve("loss"), *(curve(tag, "eval", ((70, 0.3),)) for tag in ("loss", "auc"))]
    )
    assert ([plot.title for plot in plots], others) == (["loss"], [])
    assert plots[0].description.endswith("to 0.25 at step 70; evaluation: 0.3 at step 70.")
    (plot,), _ = curve_plots([curve("epoch_loss", "train"), curve("epoch_loss", "validation")])
    assert plot.title == "loss"
    assert "training: " in plot.description
    assert "evaluation: " in plot.description


def test_what_matters_is_drawn_first():
    names = ["bias", "global_step/sec", "auc", *(f"m{number}" for number in range(6)), "loss"]
    plots, others = curve_plots([*map(curve, names), curve("one point", points=((1, 0.5),))])
    assert [plot.title for plot in plots] == ["loss", "auc", "m0", "m1", "m2", "m3"]
    assert others == ["m4", "m5", "bias", "global_step/sec"]
    plots, others = curve_plots([curve("bias")])
    assert ([plot.title for plot in plots], others) == (["bias"], [])


def test_a_summary_that_was_written_twice_is_one_curve():
    plots, others = curve_plots([curve("loss_2"), curve("loss_1"), curve("loss", "eval"), curve("top_5")])
    assert ([plot.title for plot in plots], others) == (["loss", "top_5"], [])
    assert plots[0].description.count("training: ") == plots[0].description.count("evaluation: ") == 1
    twins = [curve("auc"), curve("auc_1"), curve("auc_2", points=((1, 0.5), (70, 0.3)))]
    assert [plot.title for plot in curve_plots(twins)[0]] == ["auc", "auc_2"]


def test_the_mean_loss_of_an_evaluation_is_beside_the_loss_of_the_training():
    batches, rows = ((1, 0.8), (70, 0.3)), ((1, 0.75), (70, 0.25))
    evaluation = [curve("loss", "eval", batches), curve("average_loss", "eval", rows)]
    (plot,), _ = curve_plots([curve("loss"), *evaluation])
    assert plot.description.endswith("evaluation: from 0.75 at step 1 to 0.25 at step 70.")
    sums = curve("loss", "eval", ((1, 48.0), (70, 16.0)))  # of 64 rows
    plots, _ = curve_plots([curve("loss"), sums, evaluation[1]])
    assert [plot.title for plot in plots] == ["loss", "average_loss"]
    (plot,), _ = curve_plots([evaluation[1]])
    assert plot.title == "average_loss"


@pytest.mark.parametrize(
    ("share", "found"),
    [
        (None, ""),
        (0.126, "Time spent waiting for input data: 13%."),
        (
            0.5,
            "Time spent waiting for input data: 50%. The input is slower than the steps: parse "
            "whole batches (batch before map), cache data that fit in memory, run map in parallel, and "
            "prefetch.",
        ),
    ],
)
def test_how_long_it_waited_for_its_input(share, found):
    points = [] if share is None else [curve(INPUT_WAIT, points=((90, 0.9), (100, share)))]
    assert waiting_in_words([curve("loss"), *points]) == found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"is_dropped": True, "last_step": 1200}, "dropped at step 1,200"),
        ({"is_dropped": True, "last_step": 1200, "steps_per_tree": 6}, "dropped at step 1,200 (200 trees)"),
    ],
)
def test_where_a_model_was_dropped(changes, expected):
    fields = {"model": "linear", "loss": 0.5, "metrics": {}, "step": 300, "seconds": 1.0}
    fields |= {"is_dropped": False, "last_step": 300, "steps_per_tree": 0}
    (row,) = models_table([{**fields, "failure": "", "is_chosen": False, **changes}])["rows"]
    assert row["dropped"] == expected
    assert row["step"] == ("300 (50 trees)" if "steps_per_tree" in changes else "300")


def test_the_models_are_listed_with_the_chosen_one(full, bare, failed):
    for context in (full, bare):
        table = describe(context)["models"]
        assert table["metrics"] == ["auc"]
        assert [row["is_chosen"] for row in table["rows"]] == [True, False]
        assert (table["rows"][1]["failure"], table["has_failures"]) == (HOSTILE, True)
    assert describe(bare)["missing"]
    assert describe(failed) is None
