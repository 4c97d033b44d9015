import json
from dataclasses import asdict, replace

import pytest

from pipelines.steps.reasons import reason_of_run
from pipelines.steps.step_folders import FinishedStep
from pipelines.steps.step_plan import OutputRef, StepPlan

FIRST, SECOND = (OutputRef("Trainer", step, "model") for step in ("first", "second"))


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ((FIRST,), (SECOND,), "Trainer has a new output"),
        ((), (FIRST,), "there is a baseline_model now"),
        ((FIRST,), (), "there is no baseline_model any more"),
    ],
)
def test_an_input_that_comes_or_goes_is_no_new_output_of_its_producer(before, now, reason, tmp_path):
    plan = StepPlan("Evaluator", {}, {}, inputs={"baseline_model": now})
    former = asdict(replace(plan, inputs={"baseline_model": before}))
    assert reason_of_run(plan, FinishedStep(former, {}, 1, "run-1", 1.0, tmp_path)) == reason


def test_a_baseline_that_was_the_model_before_is_no_new_output(tmp_path):
    plan = StepPlan("Evaluator", {}, {}, {"model": (SECOND,), "baseline_model": (SECOND,)})
    former = asdict(replace(plan, inputs={"model": (SECOND,), "baseline_model": (FIRST,)}))
    stored = json.loads(json.dumps(former))
    step = FinishedStep(stored, {}, 1, "run-1", 1.0, tmp_path)
    assert reason_of_run(plan, step) == "another baseline_model"


def test_a_push_elsewhere_does_not_mean_that_what_was_pushed_is_gone(tmp_path):
    plan = StepPlan("Pusher", {}, {"folder": "b"}, fingerprints={"push": "run-2"})
    former = asdict(replace(plan, parameters={"folder": "a"}, fingerprints={"push": "run-1"}))
    reason = reason_of_run(plan, FinishedStep(former, {}, 1, "run-1", 1.0, tmp_path))
    assert "no longer exists" not in reason
    assert "a -> b" in reason
