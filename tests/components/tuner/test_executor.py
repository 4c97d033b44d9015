import json

import pytest

from components.errors import SettingError
from components.tuner.search_space import Range, SearchSpace
from components.tuner.settings import TunerSettings
from tests.components.tuner.conftest import search_of

RUN_FN = "tests.components.tuner.line_module.run_fn"
SPACE = SearchSpace((Range("learning_rate", 1e-4, 0.2, log=True),))
SETTINGS = TunerSettings(SPACE, trials=5, metric="loss", pruner="none")


@pytest.mark.more
def test_a_search_finds_better_values_than_the_default_on_rows_of_the_train_split(tune):
    best, results = tune(SETTINGS)
    search = search_of(results)
    assert [one["state"] for one in search["trials"]] == ["finished"] * 5
    first = search["trials"][0]
    assert (first["is_first"], first["values"]) == (True, {})
    # One row in five judges: x = 1/8, 6/8, 11/8, 16/8. The loss is (3 - w)**2 * mean(x**2), and
    # 40 steps at 0.001 shrink 3 - w by 1 - 2 * 0.001 * mean(x**2 of the other 16 rows) each.
    judging = sum((k / 8) ** 2 for k in (1, 6, 11, 16)) / 4
    # Batches of 20 rows go through the 16 rows again and again: their mean is about that of all.
    learning = sum((k / 8) ** 2 for k in range(1, 21) if k % 5 != 1) / 16
    expected = 9 * (1 - 0.002 * learning) ** 80 * judging
    assert first["value"] == pytest.approx(expected, rel=0.02)
    assert search["best"] != 0
    values = json.loads((best / "best_hyperparameters.txt").read_text())["values"]
    assert values == search["trials"][search["best"]]["values"]
    assert search["trials"][search["best"]]["value"] < first["value"] / 10
    assert not (best.parent / "unfinished").exists()


@pytest.mark.more
def test_the_first_trial_has_the_defaults_if_all_parameters_have_one(tune):
    space = SearchSpace((Range("learning_rate", 1e-4, 0.2, log=True, default=0.01),))
    _, results = tune(TunerSettings(space, trials=1, metric="loss"))
    (only,) = search_of(results)["trials"]
    assert (only["is_first"], only["values"]) == (True, {"learning_rate": 0.01})


def test_a_run_fn_reports_its_evaluations_and_the_last_one_counts(tune):
    _, results = tune(SETTINGS, RUN_FN, "run_fn")
    for one in search_of(results)["trials"]:
        rate = one["values"].get("learning_rate", 0.001)
        assert one["value"] == pytest.approx(abs(rate - 0.1) + 1 / 3)
        assert [evaluation["step"] for evaluation in one["evaluations"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("config", "metric", "message"),
    [({"silent": 1}, "loss", "call fn_args.trial.report"), ({}, "los", "Did you mean 'loss'")],
)
def test_a_trial_without_the_metric_is_an_error_that_says_what_to_do(tune, config, metric, message):
    with pytest.raises(ValueError, match=message):
        tune(TunerSettings(SPACE, metric=metric), RUN_FN, "run_fn", custom_config=config)


@pytest.mark.more
def test_an_error_fails_a_trial_but_in_the_first_one_the_search(tune):
    _, results = tune(SETTINGS, custom_config={"broken_above": 0.01})
    failed = [one for one in search_of(results)["trials"] if one["state"] == "failed"]
    assert failed
    assert {one["reason"] for one in failed} == {"ArithmeticError: too fast"}
    with pytest.raises(ArithmeticError, match="too fast"):
        tune(SETTINGS, custom_config={"broken_above": 0.0001}, run_id="run-2")


def test_a_parameter_that_the_code_does_not_read_ends_the_search(tune):
    space = SearchSpace((Range("learning_rat", 0.1, 0.2),))
    with pytest.raises(SettingError, match=r"does not read\. Did you mean 'learning_rate'"):
        tune(TunerSettings(space, trials=3, metric="loss"), steps=10)


def test_two_searches_with_a_seed_are_equal_and_with_another_seed_they_differ(tune, tmp_path):
    def values(seed, run_id):
        settings = TunerSettings(SPACE, trials=6, metric="loss", seed=seed)
        _, results = tune(settings, RUN_FN, "run_fn", run_id=run_id)
        return [one["values"] for one in search_of(results)["trials"]]

    assert values(1, "run-1") == values(1, "run-2") != values(2, "run-3")


@pytest.mark.more
def test_a_trial_that_falls_behind_is_pruned_but_not_at_its_end(tune):
    """Four first trials are fast; those that follow are slow, and behind from the first evaluation on."""
    firsts = tuple({"learning_rate": 0.1 + number / 100} for number in range(4))
    slow = SearchSpace((Range("learning_rate", 1e-6, 1e-5),))
    settings = TunerSettings(slow, trials=5, metric="loss", first_trials=firsts)
    for steps, state, evaluated in ((60, "pruned", 4), (40, "finished", 4)):
        _, results = tune(settings, steps=steps, run_id=f"run-{steps}")
        trials = search_of(results)["trials"]
        assert [one["state"] for one in trials] == ["finished"] * 4 + [state]
        assert len(trials[4]["evaluations"]) == evaluated  # one each 10 steps
    assert trials[4]["reason"] == ""


@pytest.mark.more
def test_each_fold_is_judged_on_other_rows_and_the_mean_counts(tune):
    space = SearchSpace((Range("learning_rate", 1e-7, 0.2, default=1e-6),))
    _, results = tune(TunerSettings(space, trials=1, folds=5, metric="loss"), steps=10)
    (only,) = search_of(results)["trials"]
    # Nothing is learned at such a rate: the weight stays 0, and the loss is 9 * mean(x**2) of the rows.
    means = [sum((k / 8) ** 2 for k in range(fold, 21, 5)) / 4 for fold in range(1, 6)]
    assert only["folds"] == pytest.approx([9 * mean for mean in means], rel=1e-3)
    assert only["value"] == pytest.approx(9 * sum(means) / 5, rel=1e-3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("config", "counts"), [({}, -1), ({"best": 1}, 0)])
def test_a_trial_counts_with_the_checkpoint_that_would_be_served(tune, tmp_path, config, counts):
    """The weight swings further with each step at this rate: the first evaluation is the best one."""
    space = SearchSpace((Range("learning_rate", 0.1, 1.0, default=0.5),))
    settings = TunerSettings(space, trials=1, metric="loss")
    _, results = tune(settings, custom_config=config)
    (only,) = search_of(results)["trials"]
    losses = [one["metrics"]["loss"] for one in only["evaluations"]]
    assert losses == sorted(losses)
    assert len(losses) == 4
    assert only["value"] == losses[counts]
    assert only["step"] == (10 if config else 40)
    assert not list(tmp_path.rglob("saved_model.pb"))
