import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.timetable import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "secs"),
    [("90s", 90), ("15m", 900), ("6h", 21_600), ("2d", 172_800), ("1w", 604_800), ("1h30m", 5_400)],
)
def test_durations_are_read_and_written(text, secs):
    assert parse_duration(text, "--every") == secs
    assert parse_duration(format_duration(secs), "--every") == secs


def test_they_are_read_as_people_write_them():
    assert parse_duration(" 1H 30M ", "--every") == 5_400
    assert format_duration(90_061) == "1d1h1m1s"
    assert format_duration(0.2) == "0s"


@pytest.mark.parametrize("text", ["6", "", "h", "6 hours", "-6h", "1.5h", "0s", "3661d"])
def test_others_are_refused(text):
    with pytest.raises(BadInputError, match=r"--every .*Received: "):
        parse_duration(text, "--every")
