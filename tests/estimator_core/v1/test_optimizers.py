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


def test_what_is_no_name_of_an_optimizer():
    made = v1_optimizer(train.AdamOptimizer, 0.25)()  # a class is made without arguments
    assert isinstance(made, train.AdamOptimizer)
    for given in (train.AdamOptimizer(0.1), lambda: None):
        assert v1_optimizer(given, 0.25) is given
    with pytest.raises(ValueError, match=r"'Adam', 'Adagrad'.*optimizer='adam'"):
        v1_optimizer("adam", 0.25)
