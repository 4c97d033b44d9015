import json

from pipelines.root import Root
from pipelines.scheduling.notify.notification import of_missed, of_outcome
from pipelines.scheduling.ticks import Tick

TICK = Tick(
    "trips",
    "20260131T100000Z",
    "2026-01-31T10:00:00+00:00",
    state="done",
    status="not_blessed",
    run_id="run-1",
    reason="auc is worse",
)
NOW = "2026-01-31T10:05:00+00:00"


def test_a_run_that_was_not_blessed_and_has_drifted(root, record):
    record(
        "run-1",
        status="not_blessed",
        metrics={"auc": 0.5},
        serving_version="3",
        report="/r.html",
        notes=("data: span 8", "anomaly: column 'miles': metres?"),
    )
    told = of_outcome(Root(root), TICK.changed(drifted=True), NOW, None)
    assert [one.event for one in told] == ["not_blessed", "drifted"]
    content = told[0].as_json()
    json.dumps(content, allow_nan=False)
    assert content["id"] == "trips-20260131T100000Z-not_blessed"
    assert content["text"] == "trips: run run-1 was not blessed: auc is worse"
    assert content["metrics"] == {"auc": 0.5}
    assert (content["serving_version"], content["report"]) == ("3", "/r.html")
    assert (content["schema"], content["root"], content["time"]) == (1, str(root), NOW)
    assert told[1].notes == ("column 'miles': metres?",)
    assert told[1].text == "trips: the data have changed: column 'miles': metres?"
    assert told[0].id != told[1].id


def test_a_run_that_was_none(root, tmp_path):
    tick = TICK.changed(status="failed", run_id=None, reason="no such column")
    (told,) = of_outcome(Root(root), tick, NOW, tmp_path / "1.err")
    assert told.text == f"trips: the run that was due at {TICK.due} failed: no such column"
    assert told.log == str(tmp_path / "1.err")


def test_a_push_is_reported_with_its_version(root):
    tick = TICK.changed(status="pushed", reason=None, version="4")
    (told,) = of_outcome(Root(root), tick, NOW, None)
    assert told.text == "trips: run run-1 pushed version 4"
    (elsewhere,) = of_outcome(Root(root), tick.changed(version=None), NOW, None)
    assert elsewhere.text == "trips: run run-1 pushed"
    (without,) = of_outcome(Root(root), tick.changed(version=None, status="finished"), NOW, None)
    assert (without.event, without.text) == ("finished", "trips: run run-1 finished")


def test_missed_runs_are_reported_in_one_notification(root):
    later = TICK.changed(key="20260131T100200Z", due="2026-01-31T10:02:00+00:00")
    told = of_missed(Root(root), (TICK, later), NOW)
    assert told.missed == {"count": 2, "first": TICK.due, "last": later.due}
    assert told.text == (
        f"trips: 2 runs were due between {TICK.due} and {later.due} and had not started by {NOW}"
    )
    assert of_missed(Root(root), (TICK,), NOW).text == (
        f"trips: a run was due at {TICK.due} and had not started by {NOW}"
    )
    assert told.id == "trips-20260131T100000Z-missed"


def test_a_held_model_is_told_once(root, record):
    tick = TICK.changed(status="held", reason="the labels")
    record("run-1", status="held")
    (told,) = of_outcome(Root(root), tick, NOW, None)
    assert (told.event, told.status) == ("held", "held")
    assert told.text == ("trips: run run-1 holds its model until `approve` decides: the labels")
    record("run-2", status="held", same_as="run-1")
    assert of_outcome(Root(root), tick.changed(run_id="run-2"), NOW, None) == []
    record("run-3", status="not_blessed", same_as="run-1")  # it was rejected
    rejected = tick.changed(status="not_blessed", run_id="run-3")
    assert of_outcome(Root(root), rejected, NOW, None) == []
