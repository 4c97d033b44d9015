import pytest

from pipelines.kubeflow.cron_fields import CRON_FIELDS

FIELDS = {field.name: field for field in CRON_FIELDS}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("second", "0"),
        ("second", "59"),
        ("minute", "*/5"),
        ("minute", "5-50/15,59"),
        ("hour", "23"),
        ("day", "?"),
        ("day", "1,31"),
        ("month", "jan-Dec"),
        ("month", "12"),
        ("weekday", "MON-FRI"),
        ("weekday", "0,6"),
    ],
)
def test_what_kubeflow_takes(name, text):
    assert FIELDS[name].fault(text) is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("minute", "61", "'61' is no minute: 0 to 59"),
        ("hour", "3,24", "'3,24' is no hour: 0 to 23"),
        ("day", "0", "1 to 31"),
        ("month", "13", "1 to 12, or JAN to DEC"),
        ("month", "MON", "1 to 12"),
        ("weekday", "7", "0 to 6, or SUN to SAT"),
        ("hour", "20-4", "ends before it begins"),
        ("weekday", "FRI-MON", "ends before it begins"),
        ("second", "*/0", "a step of 0"),
        ("second", "1,,2", "no field of a schedule"),
        ("day", "L", "no field of a schedule"),
        ("weekday", "5#3", "no field of a schedule"),
    ],
)
def test_what_it_would_not_start(name, text, message):
    assert message in FIELDS[name].fault(text)
