from types import SimpleNamespace

import pytest
from google.protobuf import text_format
from tensorflow_model_analysis.proto import config_pb2, validation_result_pb2

from components.evaluator.gate import judgement
from components.evaluator.gate.check import Check
from components.evaluator.gate.verdict import Verdict, load_verdict


def test_a_verdict_is_read_back_as_it_was_written(tmp_path):
    check = Check("auc", "trivial", 0.6, 0.5, 0.5, True, 0.1, None, 0.3, 0.9, 7, False, "auc 0.6 ...")
    verdict = Verdict(
        False, {"auc": None}, ["auc is bad"], {"auc": 0.5}, {"a:1": {"auc": 1.0}}, checks=(check,),
        not_checked=("this",), intervals={"auc": (None, 0.9)}, baseline_intervals={"auc": (0.1, 0.7)},
    )  # fmt: skip
    verdict.write(str(tmp_path))
    assert load_verdict(str(tmp_path)) == verdict


def test_a_missing_verdict_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No verdict in .*verdict\.json is missing"):
        load_verdict(str(tmp_path))


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (
            "metric_threshold { value_threshold { lower_bound { value: 0.7 } } }"
            " metric_value { double_value { value: 0.61 } }",
            "recall of 'late' where city = 'Oslo' and day = 1: 0.61 is below the lower bound 0.7",
        ),
        (
            "metric_threshold { change_threshold { absolute { value: -0.1 } } }"
            " metric_value { double_value { value: -0.2 } }",
            "recall of 'late' where city = 'Oslo' and day = 1 changed by -0.2 from the baseline's 0.8 to "
            "0.6, where at least -0.1 is required",
        ),
        (
            "metric_threshold { value_threshold { lower_bound { value: 0.5 } } }"
            " metric_value { double_value { value: nan } }",
            "recall of 'late' where city = 'Oslo' and day = 1 has a threshold but no value: the examples "
            "lack the data that it needs",
        ),
    ],
)
def test_a_sentence_names_class_and_slice(failure, sentence):
    failure = text_format.Parse(failure, validation_result_pb2.ValidationFailure())
    failure.metric_key.name = "recall@late"
    mine, theirs = {"recall@late": 0.6}, {"recall@late": 0.8}
    assert judgement._sentence(failure, "", mine, theirs, {"day": 1, "city": "Oslo"}) == sentence


def test_a_failure_under_a_further_model_spec_names_it(monkeypatch):
    def load_eval_result(_, model_name):
        value = {"early": 0.75, "late": 0.5, "old": 0.25}[model_name]
        return SimpleNamespace(slicing_metrics=[((), {"": {"": {"auc": {"doubleValue": value}}}})])

    failure = """metric_validations_per_slice { slice_key {} failures {
      metric_key { name: "auc" model_name: "late" is_diff: true }
      metric_threshold { change_threshold { direction: HIGHER_IS_BETTER absolute { value: 0.3 } } }
      metric_value { double_value { value: 0.25 } } } }"""
    result = text_format.Parse(failure, validation_result_pb2.ValidationResult())
    monkeypatch.setattr(judgement.tfma, "load_eval_result", load_eval_result)
    monkeypatch.setattr(judgement.tfma, "load_validation_result", lambda _: result)
    config = text_format.Parse('metrics_specs { thresholds { key: "auc" } }', config_pb2.EvalConfig())
    verdict = judgement.make_verdict("", config, candidate="early", baseline="old", further=["late"])
    assert (verdict.metrics, verdict.further_models) == ({"auc": 0.75}, {"late": {"auc": 0.5}})
    assert verdict.failures == [
        "auc changed by +0.25 from the baseline's 0.25 to 0.5, where at least +0.3 is required "
        "(model: late, slice: Overall)"
    ]
