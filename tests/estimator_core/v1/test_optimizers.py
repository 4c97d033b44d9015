import pytest
import tensorflow as tf

from estimator_core.v1.model_fns import v1_optimizer

train = tf.compat.v1.train


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Adagrad", train.AdagradOptimizer),
        ("Adam", train.AdamOptimizer),
        ("Ftrl", train.FtrlOptimizer),
        ("RMSProp", train.RMSPropOptimizer),
        ("SGD", train.GradientDescentOptimizer),
    ],
)
def test_names_are_optimizers_of_tensorflow_1(name, kind):
    made = v1_optimizer(name, 0.25)()
    assert type(made) is kind
    assert 0.25 in vars(made).values()  # the learning rate


def test_a_class_is_made_without_arguments():
    assert isinstance(v1_optimizer(train.AdamOptimizer, 0.25)(), train.AdamOptimizer)


def test_anything_else_is_handed_on():
    for given in (train.AdamOptimizer(0.1), lambda: None):
        assert v1_optimizer(given, 0.25) is given


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"'Adam', 'Adagrad'.*optimizer='adam'"):
        v1_optimizer("adam", 0.25)
