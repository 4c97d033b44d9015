"""The checks can be made again elsewhere; their findings are tested through `execute`."""

import json
from types import SimpleNamespace

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.types.standard_artifacts import ExampleAnomalies

from components import Verdict
from pipelines.data.staging import StagedData
from pipelines.runs.checks.component_checks import (
    AnomalyCheck,
    FinalMetricsCheck,
    LabelCheck,
    ModelCheck,
    ServedModelCheck,
    SplitCheck,
    VerdictCheck,
    check_as_json,
    check_from_json,
    component_checks,
)
from pipelines.runs.definitions.csv_to_serving import csv_to_serving


@pytest.mark.parametrize(
    "check",
    [
        LabelCheck("CsvExampleGen", "y", {"decimal": ","}, "time", stops=False),
        SplitCheck("CsvExampleGen"),
        AnomalyCheck("ExampleValidator", "warn", has_own_schema=True),
        ModelCheck(compares_models=False),
        VerdictCheck(("auc", "recall"), ({"metric": "auc", "lower": 0.5},), "7"),
        FinalMetricsCheck(("auc",)),
        ServedModelCheck(),
    ],
)
def test_a_check_survives_its_way_through_json(check):
    again = check_from_json(json.loads(json.dumps(check_as_json(check))))
    assert again == check
    assert type(again) is type(check)


@pytest.mark.parametrize(("model", "compares"), [("auto", True), ("linear", False)])
def test_the_checks_of_a_run(data, plan, model, compares):
    data.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(400)))
    planned = plan(
        f"trainer.model={model}",
        "example_validator.on_anomalies=fail",
        "split.on_label_difference=warn",
        "split.test=0.2",
        'evaluator.thresholds=[{metric = "auc", lower = 0.75}]',
    )
    pipeline = csv_to_serving(planned, StagedData(data.parent, data.name, ()))
    found = {component.id: check for component, check in component_checks(planned, pipeline, "7").items()}
    assert found.pop("CsvExampleGen") == LabelCheck("CsvExampleGen", "y", None, "row", False)
    assert found.pop("StatisticsGen") == SplitCheck("CsvExampleGen")
    assert found.pop("ExampleValidator") == AnomalyCheck("ExampleValidator", "fail", False)
    verdict = found.pop("Evaluator")
    assert verdict.baseline_version == "7"
    assert verdict.metrics[0] == "auc"
    assert verdict.thresholds[0]["lower"] == 0.75
    assert found.pop("TestEvaluator") == FinalMetricsCheck(verdict.metrics)
    assert found == {"Trainer": ModelCheck(compares), "ServingCheck": ServedModelCheck()}


@pytest.mark.parametrize(("weight", "version"), [("x", None), (None, "7")])
def test_metrics_at_the_push_of_a_model_of_other_weights_are_not_compared(
    data, plan, root, killed, weight, version
):
    data.write_text("x,z,y\n" + "".join(f"{number},{number}.5,{number % 2}\n" for number in range(40)))
    root.records.write(killed.changed(status="pushed", version="7"))
    planned = plan(*([f"data.weight={weight}"] if weight else []))
    pipeline = csv_to_serving(planned, StagedData(data.parent, data.name, ()))
    assert component_checks(planned, pipeline, "7")[pipeline.evaluator].baseline_version == version


def _artifacts(folder, *keys):
    return {key: [SimpleNamespace(uri=str(folder))] for key in keys}


def test_what_the_serving_check_could_not_compare_is_noted(root, tmp_path):
    result = {"rows": 9, "not_checked": ["the signature 'a': its input 'b' is no column"]}
    (tmp_path / "serving_check.json").write_text(json.dumps(result))
    findings = ServedModelCheck()(_artifacts(tmp_path, "blessing"), root)
    assert findings.notes == ("ServingCheck: not compared: the signature 'a': its input 'b' is no column",)
    assert findings.details["serving_check"]["rows"] == 9


def test_the_rows_that_test_may_be_none(root, tmp_path):
    check = FinalMetricsCheck(("recall", "auc"))
    for metrics, notes in (
        ({"auc": 0.9, "example_count": 5.0, "recall": 0.5}, ()),
        ({"example_count": 0.0}, ("the split 'test' has no rows, because the data have too few",)),
        ({}, ("the split 'test' has no rows, because the data have too few",)),
    ):
        Verdict(metrics=metrics).write(str(tmp_path))
        findings = check(_artifacts(tmp_path, "evaluation"), root)
        assert findings.notes == notes
        assert list(findings.test_metrics) == ([] if notes else ["recall", "auc", "example_count"])


def test_bounds_have_the_intervals_of_all_rows_or_of_their_slice(root, tmp_path):
    slices, baseline_slices = {"city:Oslo": {"recall": 0.5}}, {"city:Oslo": {"recall": 0.75}}
    verdict = Verdict(metrics={"recall": 0.6}, slices=slices, baseline_slices=baseline_slices)
    verdict.write(str(tmp_path))
    measured = {
        "Overall": {"intervals": {"recall": [0.5, 0.7]}},
        "city:Oslo": {"intervals": {"recall": [0.3, 0.6]}},
    }
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "slices.json").write_text(json.dumps({"slices": measured}))
    bounds = (
        {"metric": "recall", "lower": 0.55},
        {"metric": "recall", "lower": 0.4, "max_regression": 0.2, "slice": {"city": "Oslo"}},
    )
    findings = VerdictCheck(("recall",), bounds, None)(_artifacts(tmp_path, "evaluation"), root)
    fields = ("against", "value", "reference", "passed", "low", "high")
    assert [tuple(check[field] for field in fields) for check in findings.verdict.checks] == [
        ("lower", 0.6, None, True, 0.5, 0.7),
        ("lower", 0.5, None, True, 0.3, 0.6),
        ("max_regression", 0.5, 0.75, False, None, None),
    ]


def test_details_that_cannot_be_read_or_stored_end_no_run(root, tmp_path):
    check = ModelCheck(compares_models=False)
    findings = check(_artifacts(tmp_path, "model", "model_run"), root)
    (note,) = findings.notes
    assert note.startswith("the report goes without details of signatures, which cannot be read: ")
    assert list(findings.details) == ["training"]
    findings = ModelCheck(compares_models=False)(_artifacts(tmp_path, "model"), root)
    assert "details of training, which cannot be read: KeyError: 'model_run'" in findings.notes[0]
    (tmp_path / "serving_check.json").write_text('{"rows": NaN}')
    findings = ServedModelCheck()(_artifacts(tmp_path, "blessing"), root)
    (note,) = findings.notes
    assert note.startswith("the report goes without details of serving_check, which cannot be read")
    assert findings.details == {}


def test_all_anomalies_are_found_even_if_they_end_the_run(root, tmp_path):
    anomalies = ExampleAnomalies()
    anomalies.uri, anomalies.splits = str(tmp_path), ["train"]
    proto = anomalies_pb2.Anomalies()
    for column in ("x", "z"):
        proto.anomaly_info[column].description = "Odd."
    (tmp_path / "Split-train").mkdir()
    (tmp_path / "Split-train" / "SchemaDiff.pb").write_bytes(proto.SerializeToString())
    check = AnomalyCheck("ExampleValidator", "fail", has_own_schema=True)
    findings = check({"anomalies": [anomalies]}, root)
    assert len(findings.notes) == len(findings.details["anomalies"]["found"]) == 2
    assert findings.failure.is_bad_input
    assert "2 anomalies" in str(findings.failure)
