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
