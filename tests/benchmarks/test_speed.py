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
    assert [one.name for one in work.contestants] == names


def test_the_works_have_letters_of_their_own_and_aims_at_their_contestants():
    letters = [work.letter for work in WORKS]
    assert len(set(letters)) == len(letters)
    assert set("abcdefghijk") <= set(letters)
    for work in WORKS:
        names = {contestant.name for contestant in work.contestants}
        assert len(names) == len(work.contestants)
        assert set(work.targets) <= names | {BEST_KERAS}
