import pytest

import estimator_core as est
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head


@pytest.mark.parametrize(
    ("arguments", "kind", "dimension"),
    [((), est.BinaryClassHead, 1), ((3,), est.MultiClassHead, 3), ((7,), est.MultiClassHead, 7)],
)
def test_two_classes_are_binary_and_more_classes_have_a_logit_each(arguments, kind, dimension):
    head = binary_or_multi_class_head(*arguments)
    assert isinstance(head, kind)
    assert (head.logits_dimension, head.loss_reduction) == (dimension, "sum_over_batch_size")


@pytest.mark.parametrize(("n_classes", "words"), [(2, ["a", "b"]), (3, ["a", "b", "c"])])
def test_what_the_heads_are_given(n_classes, words):
    head = binary_or_multi_class_head(n_classes, "weight", words, "sum")
    assert head.loss_reduction == "sum"
    # The last class is certain for the first of the examples and out of question for the second, so
    # the loss, summed with the weights, is that of the second: 2 * 20.
    logits = [[20.0], [20.0]] if n_classes == 2 else [[0.0, 0.0, 20.0]] * 2
    loss = head.loss([words[-1], words[0]], logits, {"weight": [1.0, 2.0]})
    assert loss.numpy() == pytest.approx(40.0, rel=1e-5)


@pytest.mark.parametrize("n_classes", [1, 0, -3, None])
def test_fewer_than_two_classes_are_refused(n_classes):
    with pytest.raises(ValueError, match=f"must be at least 2. Received: n_classes={n_classes}"):
        binary_or_multi_class_head(n_classes)
