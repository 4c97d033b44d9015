from datetime import datetime, timezone

import pytest
from pydantic import ValidationError

from pipelines.scheduling.schedule import Schedule


def test_it_survives_its_file(make_schedule):
    made = make_schedule(cron="0 3 * * *", timezone="Europe/Berlin", settings=("trainer.seed=7",))
    assert Schedule.model_validate(made.model_dump(mode="json", exclude_defaults=True)) == made


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
        (
            {"since": "0001-01-01T00:00:00Z", "cron": "0 3 * * *", "timezone": "America/Lima"},
            "in the years 1970 to 8999",
        ),
        ({"grace": 3}, "Extra inputs"),
    ],
)
def test_what_it_refuses(make_schedule, changes, message):
    with pytest.raises(ValidationError, match=message):
        make_schedule(**changes)


def test_when_describes_the_time_of_the_runs(make_schedule):
    assert make_schedule(cron="0 3 * * *").when() == "0 3 * * * (UTC)"
    assert make_schedule(every_secs=5_400).when() == "every 1h30m"
    assert make_schedule(on_new_span=True).when() == "on a new span"


def test_how_late_a_run_may_be(make_schedule):
    tick = datetime(2026, 1, 31, 12, 0, tzinfo=timezone.utc)
    assert make_schedule(cron="0 3 * * *").tick_grace_secs(tick) == 900
    assert make_schedule(cron="*/10 * * * *").tick_grace_secs(tick) == 300
    assert make_schedule(every_secs=40).tick_grace_secs(tick) == 20
    assert make_schedule(every_secs=40, grace_secs=33).tick_grace_secs(tick) == 33
    assert make_schedule(on_new_span=True).tick_grace_secs(tick) == 900
    assert make_schedule(on_new_span=True, poll_secs=3_600).tick_grace_secs(tick) == 7_200
