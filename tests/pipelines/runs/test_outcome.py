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


OTHERWISE = "the ServingCheck did not bless the model: it answers otherwise"


@pytest.mark.parametrize(
    ("failures", "properties", "expected"),
    [
        ((), {"pushed": 1, "pushed_version": "7"}, RunOutcome("pushed", version="7")),
        (("too low", "too high"), {"pushed": 0}, RunOutcome("not_blessed", reason="too low; too high")),
        ((), {"pushed": 0, "not_pushed_reason": OTHERWISE}, RunOutcome("not_blessed", reason=OTHERWISE)),
        (  # even if it would be held
            (),
            {"doubts": ("one",), "pushed": 0, "not_pushed_reason": OTHERWISE},
            RunOutcome("not_blessed", reason=OTHERWISE),
        ),
    ],
)
def test_a_model_was_pushed_or_not_blessed(outcome, failures, properties, expected):
    assert outcome(*failures, **properties) == expected


def test_a_model_is_held_with_what_its_push_needs(outcome, tmp_path):
    model = "artifacts/model/5"  # relative, as a root can be moved
    uri = f"{tmp_path}/{model}"
    held = {"model_uri": uri, "saved_model": f"{uri}/Format-Serving", "warmup": "", "fingerprint": "f"}
    found = outcome(doubts=("one", "two"), pushed=0, held_model=json.dumps(held))
    assert (found.status, found.reason) == ("held", "one; two")
    assert found.held == HeldModel(model, f"{model}/Format-Serving", "", "f")


def test_the_same_model_serves_or_was_withdrawn(outcome, tmp_path):
    same = {"pushed": 0, "unchanged_version": "5", "not_pushed_reason": "the same"}
    assert outcome(**same) == RunOutcome("unchanged", reason="the same")
    add_model(tmp_path / "withdrawn" / "5")
    assert outcome(**same).reason == "the same (`rollback --to 5` makes it live again)"
