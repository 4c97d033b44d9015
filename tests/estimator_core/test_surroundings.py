import functools

from estimator_core.surroundings import surroundings_of

FACTOR = 1.0
SETTINGS = {"sizes": [1, 2]}


def _helper(x):
    return x * FACTOR


def _reads_a_helper(x):
    return _helper(x)


def _reads_settings(x):
    return x + SETTINGS["sizes"][0]


class _Model:
    def __init__(self, rate):
        self.rate = rate

    def model_fn(self, features):
        return features * self.rate


def test_a_variable_of_the_module(monkeypatch):
    before = surroundings_of(_reads_a_helper)
    assert surroundings_of(_reads_a_helper) == before
    monkeypatch.setattr(f"{__name__}.FACTOR", 2.0)
    assert surroundings_of(_reads_a_helper) != before


def test_a_collection_that_changes_in_place(monkeypatch):
    before = surroundings_of(_reads_settings)
    monkeypatch.setitem(SETTINGS, "sizes", [3, 2])
    assert surroundings_of(_reads_settings) != before


def test_a_variable_of_an_enclosing_function():
    rate = 1.0

    def function(x):
        return x * rate

    before = surroundings_of(function)
    rate = 2.0
    assert surroundings_of(function) != before


def test_what_a_partial_holds():
    of_one = surroundings_of(functools.partial(_helper, 1))
    assert surroundings_of(functools.partial(_helper, 1)) == of_one
    assert surroundings_of(functools.partial(_helper, 2)) != of_one


def test_attributes_of_the_methods_object():
    model = _Model(0.5)
    before = surroundings_of(model.model_fn)
    assert surroundings_of(model.model_fn) == before
    model.rate = 1.0
    assert surroundings_of(model.model_fn) != before


def test_objects_that_hold_each_other():
    first, second = _Model(1.0), _Model(2.0)
    first.other, second.other = second, first
    before = surroundings_of(first.model_fn)
    second.rate = 3.0
    assert surroundings_of(first.model_fn) != before
