import pytest
from tensorflow_model_analysis.proto import validation_result_pb2

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


def test_a_metric_without_a_value_fails_its_threshold_and_the_sentence_says_why():
    failure = validation_result_pb2.ValidationFailure()
    failure.metric_key.name = "auc"
    failure.metric_threshold.value_threshold.lower_bound.value = 0.5
    failure.metric_value.double_value.value = float("nan")
    assert judgement._sentence(failure, "(slice: Overall)", {}, {}) == (
        "auc has a threshold but no value: the examples lack the data that it needs (slice: Overall)"
    )
