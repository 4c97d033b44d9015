import pytest
from tfx.types.standard_artifacts import PushedModel

from components.evaluator.gate.verdict import Verdict
from pipelines.root import Root
from pipelines.root.records import RunOutcome
from pipelines.run.push_outcome import push_outcome
from tests.pushed_versions import add_model


@pytest.fixture
def outcome(tmp_path):
    def make(*failures, **properties):
        pushed = PushedModel()
        for name, value in properties.items():
            if isinstance(value, int):
                pushed.set_int_custom_property(name, value)
            else:
                pushed.set_string_custom_property(name, value)
        Verdict(not failures, {}, list(failures)).write(str(tmp_path))
        return push_outcome(pushed, str(tmp_path), Root(tmp_path))

    return make


def test_a_model_was_pushed(outcome):
    assert outcome(pushed=1, pushed_version="7") == RunOutcome("pushed", version="7")


def test_a_model_was_not_blessed(outcome):
    assert outcome("too low", "too high", pushed=0) == RunOutcome(
        "not_blessed", reason="too low; too high"
    )


def test_the_serving_check_did_not_bless_a_model_that_the_evaluator_did(outcome):
    reason = "the ServingCheck did not bless the model: it answers otherwise"
    assert outcome(pushed=0, not_pushed_reason=reason) == RunOutcome("not_blessed", reason=reason)


def test_the_same_model_serves_or_was_withdrawn(outcome, tmp_path):
    same = {"pushed": 0, "unchanged_version": "5", "not_pushed_reason": "the same"}
    assert outcome(**same) == RunOutcome("unchanged", reason="the same")
    add_model(tmp_path / "withdrawn" / "5")
    assert outcome(**same).reason == "the same (`rollback --to 5` serves it again)"
