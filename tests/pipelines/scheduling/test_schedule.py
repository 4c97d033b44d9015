from datetime import datetime, timezone

import pytest
from pydantic import ValidationError

from pipelines.scheduling.schedule import Schedule


def test_it_survives_its_file(make_schedule):
    made = make_schedule(cron="0 3 * * *", timezone="Europe/Berlin", settings=("trainer.seed=7",))
    assert Schedule.model_validate(made.model_dump(mode="json", exclude_defaults=True)) == made


LIMA = {"cron": "0 3 * * *", "timezone": "America/Lima"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cron": "0 3 * * *", "every_secs": 60}, "exactly one"),
        ({"on_new_span": True, "missed": "skip"}, "does not apply to on_new_span"),
        ({"cron": "0 3 * *"}, "five fields"),
        ({"timezone": "Europe/Bielefeld"}, "no such time zone"),
        ({"timezone": "../../etc/passwd"}, "no such time zone"),
        ({"name": "../trips"}, "pattern"),
        ({"since": datetime(2026, 1, 1)}, "zone"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "in the years 1970 to 8999"),
        ({"since": "9999-12-31T23:59:59Z"}, "in the years 1970 to 8999"),
        ({**LIMA, "since": "0001-01-01T00:00:00Z"}, "in the years 1970 to 8999"),
        ({"grace": 3}, "Extra inputs"),
    ],
)
def test_what_it_refuses(make_schedule, changes, message):
    with pytest.raises(ValidationError, match=message):
        make_schedule(**changes)


@pytest.mark.parametrize(
    ("changes", "when", "grace_secs"),
    [
        ({"cron": "0 3 * * *"}, "0 3 * * * (UTC)", 900),
        ({"cron": "*/10 * * * *"}, "*/10 * * * * (UTC)", 300),
        ({"every_secs": 5_400}, "every 1h30m", 900),
        ({"every_secs": 40}, "every 40s", 20),
        ({"every_secs": 40, "grace_secs": 33}, "every 40s", 33),
        ({"on_new_span": True}, "on a new span", 900),
        ({"on_new_span": True, "poll_secs": 3_600}, "on a new span", 7_200),
    ],
)
def test_when_its_runs_begin_and_how_late_they_may_be(make_schedule, changes, when, grace_secs):
    schedule = make_schedule(**changes)
    assert schedule.when() == when
    assert schedule.tick_grace_secs(datetime(2026, 1, 31, 12, 0, tzinfo=timezone.utc)) == grace_secs
