from components.errors import SettingError


def test_a_refused_setting_is_a_value_error_to_those_who_do_not_know_it() -> None:
    assert issubclass(SettingError, ValueError)
    assert str(SettingError("no label 'tip'")) == "no label 'tip'"
