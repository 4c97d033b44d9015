import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.monitoring.wake_up import wake_up_cron
from tests.pipelines.scheduling.conftest import START


# The grace of `--every` is half of it; a minute of it is for the pod.
@pytest.mark.parametrize(
    ("schedules", "cron"),
    [
        ([], "*/5 * * * *"),
        ([{"every_secs": 86_400}], "*/5 * * * *"),  # 15 minutes
        ([{"on_new_span": True}], "*/5 * * * *"),
        ([{"on_new_span": True, "grace_secs": 150}], "* * * * *"),
        ([{"every_secs": 360, "missed": "skip"}], "*/2 * * * *"),
        ([{"every_secs": 660}, {"every_secs": 480}], "*/3 * * * *"),
        ([{"every_secs": 660}, {"every_secs": 60, "enabled": False}], "*/4 * * * *"),
        ([{"cron": "0,8 3 * * *"}], "*/3 * * * *"),  # 4 minutes, once a day
    ],
)
def test_a_job_comes_within_each_grace(make_schedule, schedules, cron):
    assert wake_up_cron([make_schedule(**fields) for fields in schedules], None, START) == cron


def test_a_grace_that_no_job_can_keep_is_refused(make_schedule):
    with pytest.raises(
        BadInputError, match=r"Even with a job each minute.*'trips' \(every 3m\).*2m "
    ):
        wake_up_cron([make_schedule(every_secs=180, missed="skip")], None, START)


def test_a_given_expression_is_held_against_the_grace(make_schedule):
    schedule = make_schedule(every_secs=720)  # 6 minutes
    assert wake_up_cron([schedule], "*/5 * * * *", START) == "*/5 * * * *"
    message = (
        r'With --cron "\*/10 .*may start 11m after it is due, and its grace is 6m.*--grace 11m'
    )
    with pytest.raises(BadInputError, match=message):
        wake_up_cron([schedule], "*/10 * * * *", START)
    # From 7:55 to 8:00 it is five minutes; over night it is twelve hours.
    with pytest.raises(BadInputError, match="may start 12h6m after"):
        wake_up_cron([schedule], "*/5 8-19 * * *", START)
    with pytest.raises(BadInputError, match="--cron 'often': a schedule has five fields"):
        wake_up_cron([schedule], "often", START)
