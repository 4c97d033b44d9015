import pytest

from pipelines.errors import BadInputError, RunFailedError, counted


def test_a_failed_run_says_which_component_and_why():
    error = RunFailedError("Trainer", "the loss is NaN")
    assert (error.component, str(error)) == ("Trainer", "the loss is NaN")
    assert not error.is_bad_input
    assert RunFailedError("CsvExampleGen", "no rows", is_bad_input=True).is_bad_input


def test_bad_input_can_be_told_from_a_failure():
    # The command line exits with 2 for the one and with 1 for the other.
    assert not issubclass(RunFailedError, BadInputError)
    assert not issubclass(BadInputError, RunFailedError)


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [
        (0, ("row",), "0 rows"),
        (1, ("row",), "1 row"),
        (2, ("row",), "2 rows"),
        (1, ("category", "categories"), "1 category"),
        (2, ("category", "categories"), "2 categories"),
    ],
)
def test_a_count_has_its_number(count, noun, expected):
    assert counted(count, *noun) == expected
