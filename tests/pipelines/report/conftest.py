import dataclasses

import pytest

from pipelines.report.context import Context
from pipelines.root import Root
from pipelines.root.records import ComponentRecord, RunRecord

HOSTILE = "<script>alert('x')</script>&\""
RTL = "القاهرة"

CONFIG = {
    "name": "trips",
    "data": {"path": "/data/trips.csv", "label": "paid", "exclude": [], "decimal": None},
    "trainer": {"model": "auto", "train_steps": 70},
    "module": None,
}

CHECK = {
    "metric": "auc", "against": "trivial", "value": 0.81, "reference": 0.5, "bound": 0.5,
    "higher_is_better": True, "difference": 0.31, "low": 0.27, "high": None, "confidence": 0.9,
    "num_examples": 77, "passed": True, "message": "auc 0.81 is better than the trivial model's 0.5",
}  # fmt: skip

RECORD = RunRecord(
    run_id="20260102-030405",
    name=f"trips {HOSTILE}",
    status="pushed",
    started="2026-01-02T03:04:05+00:00",
    finished="2026-01-02T03:06:10+00:00",
    config=CONFIG,
    data_fingerprint="ab" * 32,
    log="/root/logs/run.log",
    code_fingerprint="cd" * 32,
    code_definitions={"taxi.py:trainer_fn": "12" * 32},
    version="1770000000",
    baseline_version="1760000000",
    serving_version="1770000000",
    metrics={"auc": 0.81, "example_count": 300.0},
    baseline_metrics={"auc": 0.75},
    intervals={"auc": (0.77, 0.85)},
    checks=(CHECK, {**CHECK, "against": "baseline", "passed": False, "message": HOSTILE}),
    not_checked=("the loss: no reason",),
    notes=(f"column {HOSTILE!r} is not used", "anomaly: train split, column 'x': odd."),
    slices={f"city:{RTL}": {"auc": 0.7}, "city:Oslo": {"auc": None}},
    components=(
        ComponentRecord("CsvExampleGen", "cached", 0.5),
        ComponentRecord("StatisticsGen", "cached", 0.0),
        ComponentRecord("ExampleValidator", "finished", 0.5),
        ComponentRecord("Trainer", "finished", 60.0),
        ComponentRecord("Evaluator", "finished", 15.0),
    ),
    graph={
        "CsvExampleGen": [],
        "StatisticsGen": ["CsvExampleGen"],
        "ServedModel": [],
        "ExampleValidator": ["StatisticsGen"],
        "Trainer": ["ExampleValidator"],
        "Evaluator": ["CsvExampleGen", "ServedModel", "Trainer"],
    },
    columns=(
        {"name": HOSTILE, "kind": "number", "use": "as it is", "missing_share": 0.125, "note": "n"},
        {"name": RTL, "kind": "category", "use": "one of 3", "missing_share": 0.0, "note": ""},
        {"name": "paid", "kind": "number", "use": "label", "missing_share": 0.0, "note": ""},
    ),
    label_by_split={
        "column": "paid",
        "test": "chi-square",
        "p_value": 0.25,
        "distance": 0.0125,
        "sizes": {"train": 200, "eval": 100},
        "shares": {"train": {"no": 0.75, HOSTILE: 0.25}, "eval": {"no": 0.7, HOSTILE: 0.3}},
    },
    models=(
        {"model": "linear", "loss": 0.4, "metrics": {"auc": 0.8}, "step": 120, "seconds": 3.2,
         "failure": "", "is_chosen": True, "is_dropped": False, "last_step": 200, "steps_per_tree": 0},
        {"model": "wide_deep", "loss": None, "metrics": {}, "step": 0, "seconds": 1.0,
         "failure": HOSTILE, "is_chosen": False, "is_dropped": False, "last_step": 0,
         "steps_per_tree": 0},
    ),
    spans=({"span": 3, "version": None, "num_files": 1},),
    data_files=({"path": "/data/span-3.csv", "bytes": 12_345, "sha256": "ef" * 32},),
    environment={"host": "vm", "python": "3.11.7", "git commit": "0123abc"},
)  # fmt: skip

STATISTICS = {
    "splits": {"train": 200, "eval": 100},
    "num_columns": 3,
    "columns": [
        {
            "name": HOSTILE,
            "type": "numbers",
            "splits": {
                "train": {
                    "missing": 20, "values": 180, "mean": 2.5, "std_dev": 1.0, "min": 0.0,
                    "median": 2.25, "max": 10.0, "zeros": 4,
                    "histogram": [[0.0, 5.0, 120.0], [5.0, 10.0, 60.0]],
                },
                "eval": {
                    "missing": 10, "values": 90, "mean": 2.0, "std_dev": 1.0, "min": 1.0,
                    "median": 2.0, "max": 6.0, "zeros": 0,
                    "histogram": [[1.0, 6.0, 90.0]],
                },
            },
        },
        {
            "name": RTL,
            "type": "text",
            "splits": {
                "train": {"missing": 0, "values": 200, "unique": 3, "length": 4.5,
                          "top": [[HOSTILE, 120.0], ["b", 60.0], ["c", 20.0]]},
                "eval": {"missing": 0, "values": 100, "unique": 2, "length": 4.5,
                         "top": [["b", 75.0], [HOSTILE, 25.0]]},
            },
        },
        {
            "name": "paid",
            "type": "whole numbers",
            "splits": {"train": {"missing": 0, "values": 200, "mean": 0.25, "std_dev": 0.4,
                                 "min": 0.0, "median": 0.0, "max": 1.0, "zeros": 150,
                                 "histogram": []}},
        },
    ],
}  # fmt: skip

BINARY = {
    "roc": [[0.0, 0.0, 1.0], [0.1, 0.6, 0.7], [1.0, 1.0, 0.0]],
    "precision_recall": [[0.0, 1.0, 1.0], [0.6, 0.8, 0.7], [1.0, 0.25, 0.0]],
    "calibration": [
        {"predicted": 0.1, "happened": 0.15, "low": 0.1, "high": 0.2, "weight": 200.0},
        {"predicted": 0.7, "happened": 0.6, "low": 0.5, "high": 0.7, "weight": 100.0},
    ],
    "histogram": [[50.0, 30.0, 20.0, 5.0], [5.0, 10.0, 20.0, 40.0]],
    "confusion": {"threshold": 0.5, "true_positives": 60.0, "false_positives": 25.0,
                  "false_negatives": 15.0, "true_negatives": 80.0},
}  # fmt: skip


def trial(number, value, state="finished", **changes):
    return {
        "number": number, "state": state, "value": value, "values": {HOSTILE: 0.123456, "units": "64,32"},
        "is_first": False, "step": 70, "secs": 12.5, "reason": "", "attempts": 1,
        "evaluations": [{"step": 70, "metrics": {"auc": value}}], **changes,
    }  # fmt: skip


SEARCH = {
    "metric": "auc",
    "direction": "maximize",
    "planned": 5,
    "folds": 1,
    "best": 2,
    "default": 0,
    "chosen": 2,
    "margin": 0.007,
    "parameters": [HOSTILE, "units"],
    "importance": {"units": 0.25, HOSTILE: 0.75},
    "trials": [
        trial(0, 0.7, is_first=True, values={}),
        trial(1, 0.6),
        trial(2, 0.8, attempts=2),
        trial(3, None, "pruned", step=None, reason=HOSTILE),
        trial(4, None, "failed", step=None, evaluations=[], reason="NaN loss"),
    ],
}

DETAILS = {
    "statistics": STATISTICS,
    "search": SEARCH,
    "anomalies": {
        "found": [
            {"text": f"train split, column {HOSTILE!r}: gone.", "is_breaking": True,
             "is_drift": False, "split": "train", "column": HOSTILE},
            {"text": "eval split, column 'x': moved.", "is_breaking": False, "is_drift": True,
             "split": "eval", "column": "x"},
        ],
        "drift": [
            {"split": "train", "column": RTL, "measure": "l_infty", "value": 0.02, "limit": 0.1},
            {"split": "train", "column": HOSTILE, "measure": "jensen_shannon_divergence",
             "value": 0.06, "limit": 0.02},
        ],
    },
    "training": {
        "num_curves": 3,
        "curves": [
            {"run": "", "tag": "loss", "points": [[1, 0.9], [50, 0.5], [70, 0.4]]},
            {"run": "eval", "tag": "loss", "points": [[1, 1.0], [70, 0.6]]},
            {"run": "", "tag": HOSTILE, "points": [[1, 10.0], [70, 20.0]]},
        ],
    },
    "signatures": {
        "bytes": 1_234_567,
        "signatures": [
            {"name": "serving_default", "method": "classify",
             "inputs": [{"name": "inputs", "type": "string", "shape": [None]}],
             "outputs": [{"name": "scores", "type": "float32", "shape": [None, 2]}]},
            {"name": "predict", "method": "predict",
             "inputs": [{"name": "examples", "type": "string", "shape": [None]}],
             "outputs": [{"name": HOSTILE, "type": "float32", "shape": None}]},
        ],
    },
    "serving_check": {
        "rows": 300, "load_seconds": 0.75, "memory_mb": 81.5, "failures": [HOSTILE],
        "not_checked": [f"the signature {HOSTILE!r}: {HOSTILE}"],
        "signatures": {
            "predict": {
                "rows": 300, "latency_ms": {"p50": 1.25, "p99": 2.5}, "not_compared": [HOSTILE],
                "compared": [
                    {"output": HOSTILE, "prediction": "logistic", "num_rows": 300,
                     "num_different": 7, "one_by_one": False,
                     "worst": [{"row": 3, "served": [HOSTILE], "judged": [0.5]}]},
                    {"output": "logits", "prediction": "logits", "num_rows": 300,
                     "num_different": 0, "one_by_one": True, "worst": []},
                ],
            },
            "empty": {"rows": 0, "latency_ms": None, "compared": [], "not_compared": []},
        },
    },
    "evaluation": {
        "plots": {"problem_type": "binary", "num_examples": 300, "classes": ["no", HOSTILE],
                  "model": BINARY, "baseline": BINARY},
        "slices": {
            "confidence": 0.95,
            "slices": {
                "Overall": {"num_examples": 300, "intervals": {"auc": [0.77, 0.85],
                                                               "example_count": [None, None]}},
                f"city:{RTL}": {"num_examples": 60, "intervals": {"auc": [0.6, None]}},
            },
        },
        "importance": {
            "features": [
                {"feature": HOSTILE, "growth": 0.2, "low": 0.1, "high": 0.3},
                {"feature": RTL, "growth": 0.05, "low": -0.01, "high": 0.11},
                {"feature": "paid", "growth": 0.0, "low": 0.0, "high": 0.0},
            ],
            "left_out": ["late"], "num_rows": 300, "loss": 0.4, "seconds": 0.5,
            "worst": [
                {
                    "label": HOSTILE, "explained": RTL, "probability": 0.0123, "loss": 4.4,
                    "contributions": [
                        {"column": HOSTILE, "cell": HOSTILE, "value": 2.5},
                        {"column": "paid", "cell": None, "value": -0.75},
                    ],
                },
                {"label": 1250.0, "prediction": 3.0, "loss": 1555009.0, "contributions": []},
            ],
        },
    },
}  # fmt: skip

FORMER = dataclasses.replace(
    RECORD,
    run_id="20260101-030405",
    version="1760000000",
    metrics={"auc": 0.75, "example_count": 250.0},
    baseline_metrics={},
    report="/root/runs/20260101-030405.html",
)


@pytest.fixture
def full(tmp_path):
    """All that can be known of a run, with a run before it."""
    return Context(RECORD, Root(tmp_path), DETAILS, (FORMER, RECORD))


@pytest.fixture
def bare(tmp_path):
    """A run of an older version: its record, and no details."""
    return Context(RECORD, Root(tmp_path), {}, (RECORD,))


@pytest.fixture
def failed(tmp_path):
    """A run whose first component failed."""
    record = RunRecord(
        run_id="20260102-030405", name="trips", status="failed", config=CONFIG, log="run.log",
        started="2026-01-02T03:04:05+00:00", finished="2026-01-02T03:04:15+00:00",
        data_fingerprint="", reason="CsvExampleGen: no space",
        components=(ComponentRecord("CsvExampleGen", "failed", 9.0),),
    )  # fmt: skip
    return Context(record, Root(tmp_path), {}, (record,))
