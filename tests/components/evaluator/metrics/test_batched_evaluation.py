import apache_beam as beam
import numpy as np
import pytest
import tensorflow_model_analysis as tfma
from apache_beam.testing import util
from google.protobuf import text_format
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.utils import config_util

from components.evaluator.metrics import batched_evaluation
from components.evaluator.metrics.batched_evaluation import Computations, SliceBatch, evaluate
from components.evaluator.metrics.extraction import Batch


def eval_config(text, has_baseline=False):
    return config_util.update_eval_config_with_defaults(
        text_format.Parse(text, config_pb2.EvalConfig()), has_baseline=has_baseline
    )


def batch(hours, labels, **predictions):
    return Batch(
        labels=np.array(labels),
        predictions={name: np.array(p) for name, p in predictions.items()},
        features={"hour": hours, "weight": [[2.0]] * len(hours)},
    )


def sliced(config, *batches, weight=""):
    """Returns the slices that come with each batch, and those at the end."""
    do_fn = SliceBatch(config, weight)
    do_fn.start_bundle()
    found = [list(do_fn.process(batch)) for batch in batches]
    return [*found, [rows.value for rows in do_fn.finish_bundle()]]


def slices(config, batch, weight=""):
    return dict(sliced(config, batch, weight=weight)[-1])


def test_rows_fall_into_their_slices():
    config = eval_config(
        'slicing_specs {} slicing_specs { feature_keys: "hour" }'
        'metrics_specs { metrics { class_name: "AUC" } }'
    )
    found = slices(config, batch([[7], [9], None, [7]], [1, 0, 0, 1], m=[0.1, 0.2, 0.3, 0.4]))
    assert {key: rows.predictions["m"].tolist() for key, rows in found.items()} == {
        (): [0.1, 0.2, 0.3, 0.4],
        (("hour", 7),): [0.1, 0.4],
        (("hour", 9),): [0.2],
    }
    assert found[(("hour", 7),)].labels.tolist() == [1, 1]
    assert found[()].weights is None
    weighted = slices(config, batch([[7]], [1], m=[0.5]), "weight")
    assert weighted[(("hour", 7),)].weights.tolist() == [2.0]
    plain = slices(config_pb2.EvalConfig(), batch([[7], [9]], [1, 0], m=[0.1, 0.2]))
    assert list(plain) == [()]  # without slicing specs there is one slice


def test_the_rows_of_several_batches_come_together_until_there_are_many(monkeypatch):
    monkeypatch.setattr(batched_evaluation, "_MAX_WAITING", 10)  # two slices: 4, 8, 12 numbers
    config = eval_config('slicing_specs {} slicing_specs { feature_keys: "hour" }')
    batches = [batch([[7], [9]], [1, 0], m=[0.1 * n, 0.2 * n]) for n in range(5)]
    found = [dict(rows) for rows in sliced(config, *batches, weight="weight")]
    assert [[*rows] for rows in found] == [
        *([], []),
        [(), (("hour", 7),), (("hour", 9),)],
        *([], []),
        [(), (("hour", 7),), (("hour", 9),)],
    ]
    assert found[2][()].predictions["m"] == pytest.approx([0, 0, 0.1, 0.2, 0.2, 0.4])
    assert found[2][()].labels.tolist() == [1, 0, 1, 0, 1, 0]
    assert found[5][(("hour", 9),)].predictions["m"] == pytest.approx([0.6, 0.8])
    assert found[5][(("hour", 9),)].weights.tolist() == [2, 2]


AUC = 'metrics_specs { metrics { class_name: "AUC" } } '


@pytest.mark.parametrize(
    "text",
    [
        'metrics_specs { metrics { class_name: "AUC" } query_key: "q" }',
        AUC + "options { min_slice_size { value: 5 } }",
        AUC + "options { compute_confidence_intervals { value: true } }",
        AUC + "cross_slicing_specs { baseline_spec {} slicing_specs {} }",
        'metrics_specs { metrics { class_name: "BinaryCrossEntropy" } }',
    ],
)
def test_what_tfma_must_do_itself(text):
    assert Computations.from_config(text_format.Parse(text, config_pb2.EvalConfig())) is None
    with pytest.raises(ValueError, match="cannot be computed on arrays"):
        evaluate(None, eval_config(text), example_weight="")


@pytest.mark.parametrize(("metric", "has_plots"), [("AUC", False), ("CalibrationPlot", True)])
def test_plots_are_announced(metric, has_plots):
    config = eval_config(f'metrics_specs {{ metrics {{ class_name: "{metric}" }} }}')
    computations = Computations.from_config(config)
    assert computations is not None
    assert computations.has_plots is has_plots


def values(results):
    return {
        slice_key: {
            f"{key.model_name}{'-' if key.is_diff else '.'}{key.name}": float(value)
            for key, value in metrics.items()
        }
        for slice_key, metrics in results
    }


def check_metrics(config, batches, expected, **tolerance):
    def check(results):
        found = values(results)
        assert found.keys() == expected.keys()
        for slice_key, metrics in expected.items():
            assert found[slice_key] == pytest.approx(metrics, nan_ok=True, **tolerance)

    with beam.Pipeline("apache_beam.runners.portability.fn_api_runner.FnApiRunner") as pipeline:
        evaluation = evaluate(pipeline | beam.Create(batches), config, example_weight="")
        assert set(evaluation) == {tfma.METRICS_KEY, tfma.VALIDATIONS_KEY}
        util.assert_that(evaluation[tfma.METRICS_KEY], check)


def test_metrics_and_differences_to_the_baseline_over_batches():
    config = eval_config(
        """
        model_specs { name: "new" } model_specs { name: "old" is_baseline: true }
        slicing_specs {} slicing_specs { feature_keys: "hour" }
        metrics_specs {
          metrics { class_name: "MeanAbsoluteError" config: '{"name": "mae"}' }
          model_names: ["new", "old"]
        }
        """,
        has_baseline=True,
    )
    batches = [
        batch([[7], [9]], [1, 0], new=[0.75, 0.25], old=[0.5, 0.5]),
        batch([[7]], [1], new=[0.5], old=[0.0]),
    ]
    # Errors of new: 0.25 and 0.5 at seven, 0.25 at nine. Of old: 0.5 and 1, and 0.5.
    expected = {
        (): {"new.mae": 1 / 3, "old.mae": 2 / 3, "new-mae": -1 / 3},
        (("hour", 7),): {"new.mae": 0.375, "old.mae": 0.75, "new-mae": -0.375},
        (("hour", 9),): {"new.mae": 0.25, "old.mae": 0.5, "new-mae": -0.25},
    }
    check_metrics(config, batches, expected)


def test_a_metric_that_needs_two_classes_has_no_value_in_a_slice_of_one():
    config = eval_config(
        """
        model_specs {}
        slicing_specs {} slicing_specs { feature_keys: "hour" }
        metrics_specs {
          metrics { class_name: "AUC" config: '{"name": "area"}' }
          metrics { class_name: "AUCPrecisionRecall" }
          metrics { class_name: "Recall" config: '{"name": "recall"}' }
          metrics { class_name: "BinaryAccuracy" config: '{"name": "accuracy"}' }
        }
        """
    )
    one = batch([[7], [7], [8], [9]], [1, 0, 1, 0], **{"": [0.9, 0.1, 0.8, 0.3]})
    nan = float("nan")
    expected = {  # area under ROC, area under precision and recall, recall, accuracy
        (): (1, 1, 1, 1),
        (("hour", 7),): (1, 1, 1, 1),
        (("hour", 8),): (nan, 1, 1, 1),  # positives only
        (("hour", 9),): (nan, nan, nan, 1),  # negatives only
    }
    names = (".area", ".auc_precision_recall", ".recall", ".accuracy")
    by_name = {key: dict(zip(names, metrics, strict=True)) for key, metrics in expected.items()}
    check_metrics(config, [one], by_name, abs=1e-4)
