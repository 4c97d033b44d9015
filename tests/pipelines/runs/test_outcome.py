import json

import pytest
from tfx.types.standard_artifacts import PushedModel

from components.evaluator.gate.verdict import Verdict
from pipelines.root import Root
from pipelines.root.records import HeldModel, RunOutcome
from pipelines.runs.outcome import push_outcome
from tests.pushed_versions import add_model


@pytest.fixture
def outcome(tmp_path):
    def make(*failures, doubts=(), **properties):
        pushed = PushedModel()
        for name, value in properties.items():
            if isinstance(value, int):
                pushed.set_int_custom_property(name, value)
            else:
                pushed.set_string_custom_property(name, value)
        held = bool(doubts)
        verdict = Verdict(not failures and not held, {}, list(failures), doubts=doubts, held=held)
        verdict.write(str(tmp_path))
        return push_outcome(pushed, str(tmp_path), Root(tmp_path))

    return make


def test_a_model_was_pushed(outcome):
    assert outcome(pushed=1, pushed_version="7") == RunOutcome("pushed", version="7")


def test_a_model_was_not_blessed(outcome):
    assert outcome("too low", "too high", pushed=0) == RunOutcome("not_blessed", reason="too low; too high")


def test_the_serving_check_did_not_bless_a_model_that_the_evaluator_did(outcome):
    reason = "the ServingCheck did not bless the model: it answers otherwise"
    assert outcome(pushed=0, not_pushed_reason=reason) == RunOutcome("not_blessed", reason=reason)


def test_a_model_is_held_with_what_its_push_needs(outcome, tmp_path):
    held = {
        "model_uri": f"{tmp_path}/artifacts/model/5",
        "saved_model": f"{tmp_path}/artifacts/model/5/Format-Serving",
        "warmup": "",
        "fingerprint": "f",
    }
    found = outcome(doubts=("one", "two"), pushed=0, held_model=json.dumps(held))
    assert (found.status, found.reason) == ("held", "one; two")
    model = "artifacts/model/5"  # relative, as a root can be moved
    assert found.held == HeldModel(model, f"{model}/Format-Serving", "", "f")


def test_the_serving_check_stops_a_model_that_would_be_held(outcome):
    reason = "the ServingCheck did not bless the model: it answers otherwise"
    found = outcome(doubts=("one",), pushed=0, not_pushed_reason=reason)
    assert found == RunOutcome("not_blessed", reason=reason)


def test_the_same_model_serves_or_was_withdrawn(outcome, tmp_path):
    same = {"pushed": 0, "unchanged_version": "5", "not_pushed_reason": "the same"}
    assert outcome(**same) == RunOutcome("unchanged", reason="the same")
    add_model(tmp_path / "withdrawn" / "5")
    assert outcome(**same).reason == "the same (`rollback --to 5` makes it live again)"
