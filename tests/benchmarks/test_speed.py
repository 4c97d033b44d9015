"""The command line of the bench."""

import pytest

from benchmarks import speed
from benchmarks.speed_works import BEST_KERAS, WORKS


def test_other_settings_of_ours_come_after_the_default_ones():
    works = speed.with_settings(WORKS[:1], ['no XLA={"jit_compile": false, "tf_random_seed": 3}'])
    first, added, *others = works[0].contestants
    assert [first, *others] == list(WORKS[0].contestants)
    assert (added.name, added.kind) == ("estimator_core, no XLA", "ours")
    assert added.settings == {"jit_compile": False, "tf_random_seed": 3}


@pytest.mark.parametrize("text", ["no XLA", "no XLA={jit_compile: false}"])
def test_settings_that_are_no_settings(text):
    with pytest.raises(ValueError, match=r"--ours takes a name|Expecting property name"):
        speed.with_settings(WORKS, [text])


def test_some_kinds_of_contestants():
    (work,) = speed.only_kinds(WORKS[:1], ["ours", "input"])
    names = ["estimator_core", "estimator_core, one step a call", "the input alone"]
    assert [contestant.name for contestant in work.contestants] == names


def test_only_environments_that_are_needed_are_made(monkeypatch):
    made = lambda name, uv: f"{uv}:{name}"  # noqa: E731
    monkeypatch.setattr(speed.speed_runs, "environment_python", made)
    by_letter = {work.letter: work for work in WORKS}
    imports, training = [by_letter["i"]], [by_letter["a"]]
    assert speed.environments(imports, "uv", None, False) == {
        "reference": "uv:reference",
        "plain": "uv:plain",
    }
    assert speed.environments(training, "uv", "mine", False) == {"reference": "mine"}
    assert speed.environments([], "uv", None, True) == {"reference": "uv:reference"}
    assert speed.environments([], "uv", None, False) == {}


def test_the_works_have_letters_of_their_own_and_aims_at_their_contestants():
    letters = [work.letter for work in WORKS]
    assert len(set(letters)) == len(letters)
    assert set("abcdefghijk") <= set(letters)
    for work in WORKS:
        names = {contestant.name for contestant in work.contestants}
        assert len(names) == len(work.contestants)
        assert set(work.targets) <= names | {BEST_KERAS}
