from pipelines.report.context import Context
from pipelines.report.sections.search import describe, history_of, summary_of
from pipelines.report.words import NOTHING

from ..conftest import HOSTILE, SEARCH, trial  # noqa: TID252


def test_trials_are_listed_with_the_best_first_and_those_without_a_value_last(full):
    rows = describe(full)["rows"]
    assert [row["number"] for row in rows] == [2, 0, 1, 3, 4]
    assert [row["marks"] for row in rows] == [
        "✓ best, resumed",
        "without a search",
        "",
        "pruned",
        "failed",
    ]
    assert [row["value"] for row in rows] == ["0.8", "0.7", "0.6", NOTHING, NOTHING]
    assert rows[0]["values"] == f"{HOSTILE} = 0.1235, units = 64,32"
    assert rows[1]["values"] == "without hyperparameters"
    assert rows[3]["reason"] == HOSTILE


def test_the_summary_compares_with_the_training_without_a_search():
    counts = "3 trials finished, 1 trial pruned, 1 trial failed, of 5 planned."
    assert summary_of(SEARCH) == f"{counts} The best auc is 0.8, and 0.7 without a search (+0.1)."
    same = {**SEARCH, "best": 0, "trials": [trial(0, 0.7, is_first=True)]}
    assert summary_of(same) == (
        "1 trial finished, of 5 planned. The best auc, 0.7, is that of the training without a search: no "
        "other trial was better."
    )
    assert "without a search had no result" in summary_of({**SEARCH, "default": None})


def test_a_difference_that_may_be_chance_is_said_to_be_and_the_default_is_marked():
    search = {**SEARCH, "chosen": 0, "margin": 0.15, "folds": 3}
    assert summary_of(search).endswith(
        "(+0.1). That may be chance: a trial has to be better by more than 0.15, two standard errors of the "
        "difference over the 3 folds. So the model is trained as without a search."
    )
    assert "0.15, 1 % of the value" in summary_of({**search, "folds": 1})
    rows = describe_of(search)["rows"]
    assert [row["marks"] for row in rows[:2]] == ["best, resumed", "✓ used, without a search"]
    assert [row["is_chosen"] for row in rows[:2]] == [False, True]


def test_a_lower_value_is_better_if_it_is_minimized():
    search = {**SEARCH, "direction": "minimize", "best": 1}
    assert "from 0.7 in trial 0 to 0.6 in trial 1" in history_of(search).description
    assert "from 0.7 in trial 0 to 0.8 in trial 2" in history_of(SEARCH).description
    assert history_of({**SEARCH, "trials": SEARCH["trials"][:1]}) is None
    rows = describe_of(search)["rows"]
    assert [row["number"] for row in rows] == [1, 0, 2, 3, 4]


def test_the_importance_of_the_parameters_is_sorted(full):
    rows = describe(full)["importance"]
    assert [(row["name"], row["share"]) for row in rows] == [
        (HOSTILE, "75.0 %"),
        ("units", "25.0 %"),
    ]
    assert [round(row["bar"]) for row in rows] == [100, 33]


def test_the_folds_are_named_with_the_metric(full):
    assert describe(full)["metric"] == "auc"
    found = describe_of({**SEARCH, "folds": 3})
    assert found["metric"] == "auc (mean of 3 folds)"
    assert found["plot"].description.startswith("auc (mean of 3 folds) by trial.")


def test_a_run_without_a_search_has_no_section(bare, failed):
    assert describe(bare) is None
    assert describe(failed) is None


def describe_of(search):
    return describe(Context(None, None, {"search": search}))
