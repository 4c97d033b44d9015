import pytest
import tensorflow as tf

from estimator_core.heads import class_predictions
from estimator_core.heads.class_predictions import LabelVocabulary

WORDS = LabelVocabulary(["no", "maybe", "yes"], 3)
LOGITS = tf.zeros([2, 3])


def test_names_and_ids_of_all_classes():
    predicted = tf.constant([[2], [0]])
    assert class_predictions.class_names(predicted, None).numpy().tolist() == [[b"2"], [b"0"]]
    assert class_predictions.class_names(predicted, WORDS).numpy().tolist() == [[b"yes"], [b"no"]]
    ids = class_predictions.all_class_ids(LOGITS, 3)
    assert ids.dtype == tf.int32
    assert ids.numpy().tolist() == [[0, 1, 2]] * 2
    names = class_predictions.all_class_names(LOGITS, 3, None)
    assert names.numpy().tolist() == [[b"0", b"1", b"2"]] * 2
    words = class_predictions.all_class_names(LOGITS, 3, WORDS)
    assert words.numpy().tolist() == [[b"no", b"maybe", b"yes"]] * 2


@pytest.mark.parametrize(
    ("vocabulary", "names"), [(None, [b"0", b"1"]), (LabelVocabulary(["a", "b"], 2), [b"a", b"b"])]
)
def test_the_classify_signature_has_a_score_and_a_name_for_each_class(vocabulary, names):
    scores = tf.constant([[0.25, 0.75]])
    outputs = class_predictions.classification_outputs({"probabilities": scores}, 2, vocabulary)
    assert list(outputs) == ["serving_default", "classification", "predict"]
    output = outputs["serving_default"]
    assert output.scores is scores
    assert output.classes.numpy().tolist() == [names]


def test_wanted_keys_must_be_among_the_valid_ones():
    valid = ("logits", "classes", "probabilities")
    assert class_predictions.wanted(None, valid) == valid
    assert class_predictions.wanted(["classes", "logits"], valid) == ("classes", "logits")
    assert class_predictions.wanted([], valid) == ()
    with pytest.raises(ValueError, match=r"keys must be among .*'classes'.*\['logits', 'class'\]"):
        class_predictions.wanted(["logits", "class"], valid)


def test_ids_are_the_places_in_the_list_and_only_ten_labels_are_shown():
    vocabulary = LabelVocabulary(["low", "mid", "high"], 3)
    ids = vocabulary.ids(tf.constant([["high"], ["low"], ["other"]]))
    assert ids.dtype == tf.int64
    assert ids.numpy().tolist() == [[2], [0], [-1]]
    assert vocabulary.strings([[1, 2]]).numpy().tolist() == [[b"mid", b"high"]]
    assert str(LabelVocabulary([b"no", b"yes"], 2)) == "[b'no', b'yes']"
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
