import pytest
import tensorflow as tf

from estimator_core.heads.class_predictions import LabelVocabulary


def test_ids_are_the_places_in_the_list_and_only_ten_labels_are_shown():
    vocabulary = LabelVocabulary(["low", "mid", "high"], 3)
    ids = vocabulary.ids(tf.constant([["high"], ["low"], ["other"]]))
    assert ids.dtype == tf.int64
    assert ids.numpy().tolist() == [[2], [0], [-1]]
    assert vocabulary.strings([[1, 2]]).numpy().tolist() == [[b"mid", b"high"]]
    labels = [f"l{i}" for i in range(11)]
    assert str(LabelVocabulary(labels[:10], 10)) == "[l0, l1, l2, l3, l4, l5, l6, l7, l8, l9]"
    assert str(LabelVocabulary(labels, 11)) == "[l0, l1, l2, l3, l4, l5, l6, l7, l8, l9, ...]"


@pytest.mark.parametrize(
    ("labels", "n_classes", "message"),
    [
        ("ab", 2, "list or a tuple"),
        ({"a", "b"}, 2, "list or a tuple"),
        (["a", "b"], 3, r"len\(label_vocabulary\)=2, n_classes=3"),
        (("a", "b", "a"), 3, "must not repeat"),
    ],
)
def test_what_is_no_vocabulary(labels, n_classes, message):
    with pytest.raises(ValueError, match=message):
        LabelVocabulary(labels, n_classes)
