"""Records of runs for tests that need only a few of their fields."""

from pipelines.root.records import RunRecord


def make_record(run_id="20260102-030405", **fields):
    """Returns the record of a run that has pushed, with some other fields."""
    defaults = {
        "name": "trips", "status": "pushed", "started": "2026-01-02T03:04:05+00:00", "config": {},
        "data_fingerprint": "", "log": "",
    }  # fmt: skip
    return RunRecord(run_id=run_id, **{**defaults, **fields})
