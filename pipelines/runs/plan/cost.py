"""Estimate of the time that a run of the generic model takes."""

START_SECS = 40.0
"""Seconds of a run on a hundred rows: loading the libraries, and graphs that do not depend on the data."""

RUN_PER_PLAN = 15.0
"""Time of a run beyond that, divided by the time in which its plan is made.

Plan and run grow with the same numbers, columns and cells, and on the same machine, so the measured time of
the plan takes the place of a formula in them. Measured on 2 cores: 13 with 64 rows and 1,000 columns, 19 with
64 rows and 6,830 columns, 9 with 10,000 rows and 1,000 columns; so an estimate can be twice the time.
"""

_SHORT_SECS = 90.0


def describe_cost(plan_secs: float) -> list[str]:
    """Returns a line with the estimated time of a run; none for a short one.

    `plan_secs`: time in which the plan was made, in seconds.
    """
    secs = START_SECS + RUN_PER_PLAN * plan_secs
    if secs < _SHORT_SECS:
        return []
    minutes = max(2, round(secs / 60))
    return [
        f"a run takes about {minutes} minutes, by the {plan_secs:.0f} s that the plan took here"
    ]
