import json

import keras_tuner
import pytest

from components.tuner.search_space import Choice, Range, SearchSpace, When
from components.tuner.settings import TunerSettings

SPACE = SearchSpace(
    (
        Choice("model", ("trees", "deep"), default="trees"),
        Range("depth", 2, 10, default=6, when=When("model", "trees")),
        Range("rate", 1e-4, 1e-1, log=True, default=0.01, when=When("model", "deep")),
        Range("steps", 10, 1_000, log=True, default=100),
        Choice("shuffle", (True, False), default=False),
    )
)


def test_keras_tuner_reads_the_form_of_the_artifact():
    values = {"model": "deep", "rate": 0.02, "steps": 70, "shuffle": True}
    config = json.loads(json.dumps(SPACE.keras_tuner_config(values)))
    found = keras_tuner.HyperParameters.from_config(config)
    assert {name: found.get(name) for name in values} == values
    assert found.get_config()["values"] == values
    kinds = {one.name: type(one).__name__ for one in found.space}
    assert kinds == {"model": "Choice", "depth": "Int", "rate": "Float", "steps": "Int", "shuffle": "Choice"}
    assert not found.is_active("depth")  # of the other model
    assert found.is_active("rate")
    for one in found.space:  # KerasTuner can search it, too
        assert one.random_sample(seed=7) is not None
    # A program that defines its space as it reads the values finds the same ones.
    assert found.Float("rate", 1e-4, 1e-1, sampling="log", default=0.5) == 0.02


def test_the_settings_survive_json_and_say_what_the_first_trial_is():
    settings = TunerSettings(SPACE, 7, 3, 2, "auc", "maximize", "none", 60.5, 3, ({"model": "deep"},))
    assert TunerSettings.from_json(settings.to_json()) == settings
    assert SPACE.defaults == {"model": "trees", "depth": 6, "steps": 100, "shuffle": False}
    assert TunerSettings(SPACE).firsts == (SPACE.defaults,)
    without = SearchSpace((Range("a", 0, 1, default=1), Range("b", 0, 1)))
    assert TunerSettings(without).firsts == ({},)


def test_what_is_in_a_space():
    assert SPACE.contains({"model": "trees", "depth": 2, "steps": 1_000, "shuffle": True})
    for values in (
        {},
        {"model": "trees", "steps": 10, "shuffle": True},
        {"model": "trees", "depth": 11, "steps": 10, "shuffle": True},
        {"model": "trees", "depth": 3, "rate": 0.01, "steps": 10, "shuffle": True},
        {"model": "trees", "depth": "3", "steps": 10, "shuffle": True},
    ):
        assert not SPACE.contains(values), values


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Range("a", 2, 1), "a.low = 2 is above a.high = 1; swap"),
        (lambda: Range("a", 0, 1, log=True), "a.low = 0 has no logarithm"),
        (lambda: Range("a", "1", 2), "a.low = '1' is not a number"),
        (lambda: Range("a", 1, float("inf")), "a.high = inf is not finite"),
        (lambda: Range("a", 1, 2, default=3), "a.default = 3 is not between"),
        (lambda: Choice("a", ()), "a has no values"),
        (lambda: Choice("a", (1, 1)), "listed twice"),
        (lambda: Choice("a", (1, "b")), "of one type"),
        (lambda: Choice("a", ([1],)), r"\[1\] is a list"),
        (lambda: Choice("a", (1, 2), default=3), "default = 3 is not one of"),
        (lambda: SearchSpace(()), "has no parameters"),
        (lambda: SearchSpace((Range("a", 0, 1),) * 2), "a parameter twice"),
        (lambda: TunerSettings(SPACE, trials=0), "trials must be at least 1. Received: 0"),
        (lambda: TunerSettings(SPACE, folds=6), "folds must be from 1 to 5. Received: 6"),
        (lambda: TunerSettings(SPACE, timeout_secs=0), "timeout_secs must be above 0"),
        (lambda: TunerSettings(SPACE, pruner="hyper"), "pruner must be one of median, none"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()
