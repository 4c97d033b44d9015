import pickle

import pytest
import tensorflow as tf

from components.errors import call_stack
from components.trainer.task_failure import TaskFailedError

HERE = __file__


class ByTwoError(Exception):
    """An error that is pickled with its one argument, and made of two."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def raise_from_a_cause():
    try:
        raise KeyError("price")
    except KeyError as error:
        raise ArithmeticError("no sum") from error


def brought_here(function):
    """Returns the exception that a function raises, after a way between processes, and the error in it."""
    with pytest.raises(BaseException) as caught:
        function()
    failure = pickle.loads(pickle.dumps(TaskFailedError.from_error(caught.value)))
    return failure, failure.error()


def test_an_error_keeps_its_cause_and_where_it_was_raised():
    failure, error = brought_here(raise_from_a_cause)
    assert (type(error), error.args) == (ArithmeticError, ("no sum",))
    assert (type(error.__cause__), error.__cause__.args) == (KeyError, ("price",))
    first_line = raise_from_a_cause.__code__.co_firstlineno
    assert call_stack(error)[-1] == (HERE, first_line + 4)
    assert call_stack(error.__cause__)[-1] == (HERE, first_line + 2)
    assert failure.text.rstrip().endswith("ArithmeticError: no sum")
    assert "raise KeyError" in str(failure)


def raise_an_operations_error():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.debugging.Assert(tf.constant(False), ["rows are missing"]))


def raise_by_two():
    raise ByTwoError(1, 2)


def leave():
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("function", "name", "message", "kind"),
    [
        (raise_an_operations_error, "InvalidArgumentError", "rows are missing", RuntimeError),
        (raise_by_two, "ByTwoError", "1 and 2", RuntimeError),
        (leave, "SystemExit", "3", SystemExit),
    ],
)
def test_an_error_that_can_not_be_pickled_keeps_its_name_and_message(function, name, message, kind):
    _, error = brought_here(function)
    assert isinstance(error, kind)
    assert type(error).__name__ == name
    assert message in str(error)
    assert call_stack(error)[-1][0].endswith(".py")


def test_errors_that_are_each_others_cause_come_to_an_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    error = TaskFailedError.from_error(first).error()
    assert str(error.__cause__) == "second"
    assert error.__cause__ is not None
    assert error.__cause__.__cause__ is None
