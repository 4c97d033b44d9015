from pipelines.artifacts.search import search_in_words


def trial(number, value, reason="", state="failed", **values):
    return {
        "number": number,
        "value": value,
        "values": values,
        "state": "finished" if value else state,
        "reason": reason,
    }


SEARCH = {
    "planned": 2,
    "folds": 3,
    "metric": "auc",
    "best": 1,
    "default": 0,
    "chosen": 1,
    "margin": 0.2,
    "trials": [trial(0, 0.7), trial(1, 0.8125, rate=0.0123456, units=64)],
}
START = "the best of 2 trials has auc 0.8125"


def test_the_best_trial_is_compared_with_the_training_without_a_search():
    expected = f"{START}, without a search 0.7: rate = 0.01235, units = 64"
    assert search_in_words(SEARCH) == expected
    assert search_in_words({**SEARCH, "default": 1}).endswith("no others were better")
    without = search_in_words({**SEARCH, "default": None})
    assert without == f"{START}; the values used without a search gave no result"


def test_a_difference_that_may_be_chance_is_said_to_be():
    search = {**SEARCH, "chosen": 0}
    assert search_in_words(search) == (
        f"{START}, without a search 0.7: the difference may be chance, because it is not above 0.2 (two "
        "standard errors of the difference over the 3 folds), so the values used without a search are kept"
    )
    assert "0.2 (1 % of the value without a search)," in search_in_words({**search, "folds": 1})


def test_trials_without_a_result_are_counted():
    lost = [trial(n, None, reason=f"{n} is full") for n in (1, 2)]
    trials = [trial(0, 0.7), *lost, trial(3, None, "it was behind", "pruned")]
    search = {**SEARCH, "planned": 9, "best": 0, "chosen": 0, "trials": trials}
    assert search_in_words(search).startswith(
        "the best of 4 trials (of 9 planned, the time was up; 1 pruned; 2 failed: 1 is full) has auc 0.7, "
    )
    one = search_in_words({**search, "planned": 1, "trials": trials[:1]})
    assert one.startswith("the only trial has auc 0.7, ")
