import dataclasses

import pytest

from pipelines.report.context import Context
from pipelines.report.page import render_report
from pipelines.report.sections.search import describe, history_plot
from pipelines.report.words import NOTHING

from ..conftest import HOSTILE, SEARCH  # noqa: TID252


def test_trials_are_listed_with_the_best_first_and_a_summary(full, bare, failed):
    rows = describe(full)["rows"]
    assert [row["number"] for row in rows] == [2, 0, 1, 3, 4]
    assert [row["marks"] for row in rows] == ["✓ best, resumed", "without a search", "", "pruned", "failed"]
    assert [row["value"] for row in rows] == ["0.8", "0.7", "0.6", NOTHING, NOTHING]
    assert rows[0]["values"] == f"{HOSTILE} = 0.1235, units = 64,32"
    assert rows[1]["values"] == "without hyperparameters"
    assert rows[3]["reason"] == HOSTILE
    assert describe(full)["summary"] == (
        "The best of 5 trials (1 pruned; 1 failed: NaN loss) has auc 0.8, without a search 0.7: "
        f"{HOSTILE} = 0.1235, units = 64,32"
    )
    rows = describe(full)["importance"]
    assert [(row["name"], row["share"]) for row in rows] == [(HOSTILE, "75.0 %"), ("units", "25.0 %")]
    assert [round(row["bar"]) for row in rows] == [100, 33]
    assert describe(full)["metric"] == "auc"
    found = describe_of({**SEARCH, "folds": 3})
    assert found["metric"] == "auc (mean of 3 folds)"
    assert found["plot"].description.startswith("auc (mean of 3 folds) by trial.")
    assert describe(bare) is None
    assert describe(failed) is None


def test_the_default_is_marked_if_the_difference_may_be_chance():
    search = {**SEARCH, "chosen": 0, "margin": 0.15, "folds": 3}
    rows = describe_of(search)["rows"]
    assert [row["marks"] for row in rows[:2]] == ["best, resumed", "✓ used, without a search"]
    assert [row["is_chosen"] for row in rows[:2]] == [False, True]


def test_a_lower_value_is_better_if_it_is_minimized():
    search = {**SEARCH, "direction": "minimize", "best": 1}
    assert "from 0.7 in trial 0 to 0.6 in trial 1" in history_plot(search).description
    assert "from 0.7 in trial 0 to 0.8 in trial 2" in history_plot(SEARCH).description
    assert history_plot({**SEARCH, "trials": SEARCH["trials"][:1]}) is None
    rows = describe_of(search)["rows"]
    assert [row["number"] for row in rows] == [1, 0, 2, 3, 4]


@pytest.mark.more
def test_a_search_of_few_trials_says_why_it_has_no_importance(full):
    sentence = "The importance of the parameters is not known: it takes six trials that finished."
    assert sentence not in render_report(full)
    few = dataclasses.replace(full, details={**full.details, "search": {**SEARCH, "importance": {}}})
    assert sentence in render_report(few)


def describe_of(search):
    return describe(Context(None, None, {"search": search}))
