import threading

import pytest

from estimator_core.execution.shards.class_patches import ClassPatches, Replacement


@pytest.fixture
def owner():
    """A class with two methods, which must be what it was at the end of the test."""

    class Base:
        def inherited(self):
            return "base"

    class Child(Base):
        def own(self):
            return "own"

    before = dict(vars(Child))
    yield Child
    assert dict(vars(Child)) == before


def marked(method):
    return lambda self: f"({method(self)})"


def both(owner):
    return [Replacement(owner, "own", marked), Replacement(owner, "inherited", marked)]


def test_methods_are_replaced_within_and_the_very_same_afterwards(owner):
    with ClassPatches().needed(both(owner)):
        assert (owner().own(), owner().inherited()) == ("(own)", "(base)")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_restores_them(owner, error):
    with pytest.raises(error), ClassPatches().needed(both(owner)):
        raise error


def test_an_interrupt_while_replacing_restores_what_was_replaced(owner):
    before = dict(vars(owner))

    def interrupted(method):
        raise KeyboardInterrupt

    patches = ClassPatches()
    replacements = [Replacement(owner, "own", marked), Replacement(owner, "inherited", interrupted)]
    with pytest.raises(KeyboardInterrupt), patches.needed(replacements):
        pytest.fail("has been interrupted")
    assert dict(vars(owner)) == before
    with patches.needed(both(owner)):
        assert owner().own() == "(own)"


def test_they_are_replaced_once_and_the_last_of_several_threads_restores_them(owner):
    patches = ClassPatches()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with patches.needed(both(owner)):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with patches.needed(both(owner)):
        thread.start()
        assert entered.wait(60)
        assert owner().own() == "(own)"
    assert owner().own() == "(own)"
    leave.set()
    thread.join()


def test_further_ones_are_replaced_only_while_anyone_needs_some(owner):
    before = dict(vars(owner))
    patches = ClassPatches()
    own, inherited = both(owner)
    patches.also([own])
    assert dict(vars(owner)) == before
    with patches.needed([own]):
        patches.also([own, inherited])
        assert (owner().own(), owner().inherited()) == ("(own)", "(base)")


def test_what_someone_else_replaces_meanwhile_stays(owner):
    original = owner.own

    def theirs(self):
        return "theirs"

    with ClassPatches().needed(both(owner)):
        owner.own = theirs
    assert vars(owner)["own"] is theirs
    assert "inherited" not in vars(owner)
    owner.own = original
