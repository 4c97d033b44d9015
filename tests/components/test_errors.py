import pytest

from components.errors import SettingError, call_stack, set_call_stack


def test_a_refused_setting_is_a_value_error_to_those_who_do_not_know_it():
    assert issubclass(SettingError, ValueError)
    assert str(SettingError("no label 'tip'")) == "no label 'tip'"


def fail():
    raise KeyError("x")


def test_where_an_error_was_raised_here_and_elsewhere():
    with pytest.raises(KeyError) as caught:
        fail()
    line = fail.__code__.co_firstlineno + 1
    assert call_stack(caught.value)[-1] == (__file__, line)
    set_call_stack(caught.value, [("module.py", 7)])
    assert call_stack(caught.value) == [("module.py", 7)]
    assert call_stack(KeyError()) == []
