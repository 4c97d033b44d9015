import numpy as np

from pipelines.serving.model import plain_columns


def lists(columns):
    return {name: values.tolist() for name, values in columns.items()}


def test_the_class_is_the_one_with_the_highest_score():
    outputs = {
        "scores": np.array([[0.25, 0.5, 0.25], [0.75, 0.25, 0.0]]),
        "classes": np.array([[b"a", b"b", b"c"]] * 2, object),
    }
    assert lists(plain_columns(outputs, "classify")) == {
        "class": ["b", "a"],
        "probability": [0.5, 0.75],
        "probability_a": [0.25, 0.75],
        "probability_b": [0.5, 0.25],
        "probability_c": [0.25, 0.0],
    }
    outputs = {"scores": np.eye(21)[[20]], "classes": np.array([[b"%d" % n for n in range(21)]], object)}
    assert lists(plain_columns(outputs, "classify")) == {"class": ["20"], "probability": [1.0]}
    found = plain_columns({"scores": np.array([[0.25, 0.75]])}, "classify")
    assert found["class"].tolist() == ["1"]


def test_other_outputs_keep_their_names():
    outputs = {
        "words": np.array([[b"x"], [b"y"]], object),
        "pair": np.array([[1, 2], [3, 4]]),
        "flat": np.array([5.0, 6.0]),
    }
    assert lists(plain_columns(outputs, "predict")) == {
        "words": ["x", "y"],
        "pair_0": [1, 3],
        "pair_1": [2, 4],
        "flat": [5.0, 6.0],
    }


def test_rows_without_a_class():
    outputs = {"scores": np.zeros((0, 3), np.float32), "classes": np.zeros((0, 3), object)}
    found = plain_columns(outputs, "classify")
    assert {name: values.tolist() for name, values in found.items()} == {"class": [], "probability": []}
    nan = float("nan")
    outputs = {
        "scores": np.array([[nan, nan], [0.25, 0.75]]),
        "classes": np.array([[b"a", b"b"]] * 2, object),
    }
    assert plain_columns(outputs, "classify")["class"].tolist() == [None, "b"]
