import json
from dataclasses import asdict
from pathlib import Path

import pytest

from pipelines.config.load import load_config
from pipelines.root.records import RunRecord, RunRecords
from pipelines.runs.reasons import reason_of_run
from pipelines.steps.step_folders import FinishedStep
from pipelines.steps.step_plan import OutputRef, StepPlan


def record(*settings, data="day/taxi.csv", **fields):
    config = load_config(data=data, label="y", settings=settings).model_dump(mode="json")
    texts = {"started": "", "data_fingerprint": "", "log": ""}
    return RunRecord(run_id="r", name="taxi", status="running", config=config, **texts, **fields)


class Records(RunRecords):
    """The records of a root, by id."""

    def __init__(self, *records):
        self._records = {record.run_id: record for record in records}

    def read(self, run_id):
        return self._records.get(run_id)

    def read_all(self):
        return list(self._records.values())


def plan_of(component, parts=(), settings=(), inputs=(), value="1"):
    """Returns a plan with a value for each of its fingerprints and settings, and an input by key."""
    return StepPlan(
        component,
        executor={},
        parameters={"parameters": {name: {"fieldValue": {"stringValue": value}} for name in settings}},
        inputs={key: (OutputRef(producer, value, "output"),) for key, producer in dict(inputs).items()},
        fingerprints=dict.fromkeys(parts, value),
    )


def step_of(plan, run_id="r7"):
    return FinishedStep(json.loads(json.dumps(asdict(plan))), {}, 1, run_id, 1.0, Path(plan.name))


def changed(component, now, former, **what):
    compared = step_of(plan_of(component, **what, value="0"))
    records = [now, *([former.changed(run_id="r7")] if former else [])]
    return reason_of_run(plan_of(component, **what), compared, now, Records(*records))


def test_what_is_said_without_a_change():
    plan, now = plan_of("Trainer"), record()
    assert reason_of_run(plan, None, now, Records(now)) == "no earlier run"
    former = now.changed(run_id="r7")
    records = Records(former, now)
    assert reason_of_run(plan, None, now, records) == "no earlier run has finished it"
    gone = "nothing changed since run r7, whose artifacts no longer exist"
    assert reason_of_run(plan, step_of(plan), now, records) == gone
    assert changed("Trainer", now, former, parts=("run",)) == "the cache is not used"
    assert changed("Pusher", now, former, parts=("run",)) == "each run decides on its push"


@pytest.mark.parametrize(
    ("now", "former", "said"),
    [
        ({"num_rows": 30}, {"num_rows": 20}, "taxi.csv has 10 rows more"),
        ({"num_rows": 20}, {"num_rows": 30}, "taxi.csv has 10 rows fewer"),
        ({"num_rows": 20}, {"num_rows": 20}, "taxi.csv has other values"),
        ({"num_rows": 20}, {"num_rows": 0}, "taxi.csv has other values"),
        ({}, {"data": "day/trips.csv"}, "taxi.csv in place of trips.csv"),
        (
            {"data": "{SPAN}.csv", "spans": ({"span": 9, "version": None, "num_files": 1},)},
            {"data": "{SPAN}.csv", "spans": ({"span": 8, "version": None, "num_files": 1},)},
            "span 9 in place of span 8",
        ),
    ],
)
def test_how_the_data_changed(now, former, said):
    assert changed("CsvExampleGen", record(**now), record(**former), parts=("data",)) == said


def test_which_functions_changed():
    former = record(code_definitions={"taxi.py:preprocessing_fn": "1", "taxi.py:trainer_fn": "2"})
    now = record(code_definitions={"taxi.py:preprocessing_fn": "3", "taxi.py:trainer_fn": "2"})
    assert changed("Transform", now, former, parts=("code",)) == "preprocessing_fn of taxi.py changed"
    now = record(code_definitions={"taxi.py:(module level)": "1", "taxi.py:trainer_fn": "2"})
    assert changed("Transform", now, former, parts=("code",)) == (
        "the top level of taxi.py, preprocessing_fn of taxi.py changed"
    )
    assert changed("Transform", now, None, parts=("code",)) == "the code of the model changed"


def test_settings_are_named_with_both_values_where_they_are_the_components_own():
    now = record("trainer.train_steps=500", "evaluator.tolerance=0.1", "data.path=b/x.csv")
    former = record("trainer.train_steps=1000")
    assert changed("Trainer", now, former, settings=("train_args",)) == ("trainer.train_steps 1000 -> 500")
    assert changed("Evaluator", now, former, settings=("checks",)) == ("evaluator.tolerance 0.05 -> 0.1")
    assert changed("Transform", now, former, settings=("custom_config",)) == (
        "its settings changed (custom_config)"
    )


def test_a_setting_that_follows_another_change_is_not_said_twice():
    what = {"settings": ("user_code",), "inputs": {"examples": "Transform"}}
    assert changed("Trainer", record(), record(), **what) == "Transform has a new output"
    what["settings"] = ("cluster", "user_code")
    assert changed("Trainer", record(), record(), **what) == (
        "its settings changed (cluster, user_code); Transform has a new output"
    )


def test_files_with_other_names_are_not_other_data():
    what = {"settings": ("input_fingerprint", "span")}
    assert changed("CsvExampleGen", record(), record(), **what) == ("the files have other names")
    what["parts"] = ("data",)
    assert changed("CsvExampleGen", record(), record(), **what) == "taxi.csv has other values"


def test_several_changes_are_said_at_once_and_the_rest_counted():
    now = record("trainer.train_steps=500", "trainer.seed=7")
    what = {
        "parts": ("libraries", "code", "core"),
        "settings": ("train_args",),
        "inputs": {"examples": "Transform", "schema": "SchemaGen"},
    }
    assert changed("Trainer", now, record(), **what) == (
        "TensorFlow, TFX or another library was updated; the code of the model changed; "
        "the code of `estimator_core` changed; and 4 more"
    )
    assert changed("Evaluator", now, record(), inputs={"model": "Trainer", "baseline_model": "Trainer"}) == (
        "Trainer has a new output; another version is live"
    )
