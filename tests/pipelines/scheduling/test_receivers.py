import pytest

from pipelines.scheduling.receivers import is_of_notify


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("notify.webhook=https://hooks.example/secret", True),
        ('"notify".webhook=https://hooks.example/secret', True),
        ("trainer.notify=1", False),
    ],
)
def test_a_setting_of_notify_is_known_also_if_its_name_is_quoted(setting, expected):
    assert is_of_notify(setting) == expected
