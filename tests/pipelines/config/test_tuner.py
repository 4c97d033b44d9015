import pytest

from components.tuner.search_space import Choice, Range
from pipelines.config.load import load_config
from pipelines.errors import BadInputError


def load(*settings):
    return load_config(data="data.csv", label="y", settings=settings)


def test_without_the_section_there_is_no_search():
    assert load().tuner is None


def test_the_entries_of_the_space():
    config = load(
        "tuner.trials=7",
        "tuner.space.rate={low = 1e-3, high = 0.1, log = true, default = 0.01}",
        "tuner.space.layers=[[32], [64, 32]]",
        "tuner.space.kind={values = ['a', 'b'], default = 'b'}",
        "tuner.space.linear={learning_rate = {low = 0.1, high = 1.0}}",
    )
    assert config.tuner.trials == 7
    assert list(config.tuner.parameters()) == [
        (None, Range("rate", 1e-3, 0.1, log=True, default=0.01)),
        (None, Choice("layers", ("32", "64,32"))),
        (None, Choice("kind", ("a", "b"), default="b")),
        ("linear", Range("linear.learning_rate", 0.1, 1.0)),
    ]


FAULTS_OF_THE_SPACE = [
    ("tuner.space.a={low = 2, high = 1}", "a.low = 2 is above a.high = 1; swap the two"),
    ("tuner.space.a={low = 0, high = 1, log = true}", "a.low = 0 has no logarithm"),
    ("tuner.space.a={low = 1, hihg = 2}", "a.hihg: there is no such key. Valid here: low"),
    ("tuner.space.a={low = 1}", "a.high is missing"),
    ("tuner.space.a={low = 1, high = 2, log = 1}", "a.log = 1 is neither true nor false"),
    ("tuner.space.a=0.1", "a = 0.1: give a list of values"),
    ("tuner.space.a=[]", "a has no values"),
    ("tuner.space.a=[0, 0.5]", r"a = [0, 0.5]: the values must be of one type: write 0.0 in place of 0"),
    ("tuner.space.a=[1, 'b']", "a = [1, 'b']: the values must be of one type, as in KerasTuner"),
    ("tuner.space.m={a = {low = 2, high = 1}}", "m.a.low = 2 is above"),
]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tuner.trials=0", "tuner.trials = 0.*greater than or equal to 1"),
        ("tuner.trails=5", "tuner.trails.*Did you mean trials"),
        ("tuner.parallel=0", "tuner.parallel = 0"),
        ("tuner.pruner=hyperband", "tuner.pruner = 'hyperband'.*'median' or 'none'"),
        ("tuner.direction=up", "tuner.direction = 'up'"),
        ("tuner.timeout_secs=-1", "tuner.timeout_secs = -1"),
    ],
)
def test_faults_are_found_before_anything_runs(setting, message):
    with pytest.raises(BadInputError, match=message):
        load(setting)


@pytest.mark.parametrize(("setting", "message"), FAULTS_OF_THE_SPACE)
def test_a_fault_in_the_space_is_named_by_its_key(setting, message):
    with pytest.raises(BadInputError) as caught:
        load("tuner.space.other=[1, 2]", setting)
    assert str(caught.value).startswith(f"tuner.space.{message}")
