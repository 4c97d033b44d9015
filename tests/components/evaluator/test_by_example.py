import numpy as np
import tensorflow_model_analysis as tfma

from components.evaluator.by_example import to_batch
from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.gate.gate import Gate


def extracts(label, prediction, weight=1.0):
    weights = np.array([weight])
    return {tfma.LABELS_KEY: label, tfma.PREDICTIONS_KEY: prediction, tfma.EXAMPLE_WEIGHTS_KEY: weights}


def test_extracts_of_one_model_become_a_batch():
    gate = Gate(DefaultChecks("binary"), "", example_weight="w")
    given = [extracts(np.array([1]), np.array([0.5]), 3.0), extracts(np.array([0]), np.array([0.25]))]
    given[0][tfma.FEATURES_KEY] = {"city": np.array([[b"Oslo"]]), "other": np.array([1])}
    batch = to_batch(given, gate, ("city",))
    assert set(batch.features) == {"city", "w"}  # what the slices need, and the weight
    assert batch.features["city"] == [[b"Oslo"], None]
    assert batch.labels.tolist() == [1, 0]
    assert batch.predictions[""].tolist() == [0.5, 0.25]
    judged = gate.judge(batch)
    assert judged.weights.tolist() == [3, 1]
    assert judged.answers[""].tolist() == [[0.5], [0.25]]


def test_extracts_of_two_models():
    gate = Gate(DefaultChecks("multi-class"), "candidate", "baseline", "w")
    both = {"candidate": np.array([0.5, 0.5]), "baseline": np.array([0.25, 0.75])}
    named = {"candidate": np.array([1]), "baseline": np.array([1])}
    weighted = extracts(named, both)
    weighted[tfma.EXAMPLE_WEIGHTS_KEY] = {"candidate": np.array([3.0]), "baseline": np.array([3.0])}
    batch = to_batch([extracts(np.array([1]), both), weighted], gate)
    assert batch.labels.tolist() == [1, 1]
    assert batch.predictions["baseline"].tolist() == [[0.25, 0.75]] * 2
    assert gate.judge(batch).weights.tolist() == [1, 3]


def test_outputs_by_name_and_ragged_labels_are_refused_with_a_reason():
    gate = Gate(DefaultChecks("binary"), "")
    several = to_batch([extracts(np.array([1]), {"a": np.array([1]), "b": np.array([2])})], gate)
    assert "not numbers" in gate.judge(several).unusable[""]
    ragged = [extracts(np.array(labels), np.array([0.5])) for labels in ([1], [1, 0])]
    assert "labels are not numbers" in gate.judge(to_batch(ragged, gate)).unusable[""]
