import numpy as np
from google.protobuf import text_format
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.metrics.extraction import Batch
from components.evaluator.metrics.slices import Slices


def slices(text):
    return Slices(text_format.Parse(text, config_pb2.EvalConfig()))


def batch(**features):
    size = len(next(iter(features.values())))
    return Batch(np.zeros(size), {"": np.zeros(size)}, features)


def test_examples_fall_into_all_slices_that_they_belong_to():
    found = slices(
        'slicing_specs {} slicing_specs { feature_keys: "city" } '
        'slicing_specs { feature_keys: "city" feature_values { key: "n" value: "2" } }'
    )
    assert found.features == ("city", "n")
    index = {
        key: list(rows)
        for key, rows in found.split(batch(city=[["Oslo"], None, ["Rome"], ["Oslo"]], n=[[2], [2], [1], [2]]))
    }
    assert index == {
        (): [0, 1, 2, 3],
        (("city", "Oslo"),): [0, 3],
        (("city", "Rome"),): [2],
        (("city", "Oslo"), ("n", 2)): [0, 3],
    }


def test_without_a_slice_all_examples_are_one():
    assert [(key, list(rows)) for key, rows in slices("").split(batch(x=[[1], [2]]))] == [((), [0, 1])]
