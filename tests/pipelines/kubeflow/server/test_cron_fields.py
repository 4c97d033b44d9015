import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.server.recurring import CRON_FIELDS, six_fields

FIELDS = {field.name: field for field in CRON_FIELDS}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("second", "0"), ("second", "59"), ("minute", "*/5"), ("minute", "5-50/15,59"), ("hour", "23"),
        ("day", "?"), ("day", "1,31"), ("month", "jan-Dec"), ("month", "12"), ("weekday", "MON-FRI"),
        ("weekday", "0,6"),
    ],
)  # fmt: skip
def test_what_kubeflow_takes(name, text):
    assert FIELDS[name].fault(text) is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("minute", "61", "'61' is not a valid minute: 0 to 59"),
        ("hour", "3,24", "'3,24' is not a valid hour: 0 to 23"),
        ("day", "0", "1 to 31"),
        ("month", "13", "1 to 12, or JAN to DEC"),
        ("month", "MON", "1 to 12"),
        ("weekday", "7", "0 to 6, or SUN to SAT"),
        ("hour", "20-4", "ends before it begins"),
        ("weekday", "FRI-MON", "ends before it begins"),
        ("second", "*/0", "a step of 0"),
        ("second", "1,,2", "not a field of a schedule"),
        ("day", "L", "not a field of a schedule"),
        ("weekday", "5#3", "not a field of a schedule"),
    ],
)
def test_what_it_would_not_start(name, text, message):
    assert message in FIELDS[name].fault(text)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 3 * * *", "0 0 3 * * *"),
        ("15 0 3 * * *", "15 0 3 * * *"),
        ("*/5 3 1,15 * MON-FRI", "0 */5 3 1,15 * MON-FRI"),
    ],
)
def test_seconds_may_be_left_out(cron, expected):
    assert six_fields(cron) == expected


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("0 3", 'cron "0 3" has 2 fields. Kubeflow takes five or six fields'),
        ("0 0 3 * * * *", "has 7 fields"),
        ("61 3 * * *", "cron \"61 3 * * *\": '61' is not a valid minute: 0 to 59"),  # as it was written
        ("0 61 3 * * *", "cron \"0 61 3 * * *\": '61' is not a valid minute: 0 to 59"),
        ("0 24 * * *", "'24' is not a valid hour: 0 to 23"),
    ],
)
def test_a_schedule_that_kubeflow_would_not_take(cron, message):
    with pytest.raises(BadInputError) as caught:
        six_fields(cron)
    assert message in str(caught.value)
