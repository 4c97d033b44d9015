"""The soak of `serve`, shortened: the campaign itself takes ten minutes or more."""

import pytest

from benchmarks.campaigns import serving_soak
from tests.pipelines import sum_models


def rows(types):
    assert types == {"city": "BYTES", "n": "INT", "x": "FLOAT"}
    return [{"x": number / 10, "n": None, "city": "Oslo"} for number in range(-20, 20)]


@pytest.mark.slow
def test_no_request_fails_while_versions_are_pushed_and_rolled_back(tmp_path):
    models = [sum_models.export_by_name(name, tmp_path / name) for name in ("classifier", "negated")]
    outcome = serving_soak.run(models, rows, tmp_path, secs=60.0, pushes=8, rollbacks=2)
    assert outcome.failures == []
    assert outcome.silent == []
    assert (len(outcome.pushes), len(outcome.rollbacks)) == (8, 2)
    assert outcome.requests > 2_000
    _, after_first_push, *_, last = outcome.mebibytes
    assert last < 1.1 * after_first_push


def test_an_outcome_tells_what_failed_and_which_version_has_not_answered():
    outcome = serving_soak.Outcome(requests=4, msecs=[1.0, 2.0, 9.0, 3.0], pushes=[7, 8])
    outcome.served[7] = 0.5
    for number in range(30):
        outcome.fail(f"status 50{number % 10}")
    summary = outcome.summary()
    assert summary["failed"] == 30
    assert len(summary["failures"]) == 20
    assert summary["silent"] == [8]
    outcome.rollbacks.append(6)
    assert outcome.silent == [8, 6]
    assert (summary["p50_msecs"], summary["longest_msecs"]) == (3.0, 9.0)
