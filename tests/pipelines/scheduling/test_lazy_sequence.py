import pytest

from pipelines.scheduling.lazy_sequence import LazySequence


def test_items_are_made_when_they_are_asked_for():
    made = []

    def square(number):
        made.append(number)
        return number * number

    squares = LazySequence(range(3, 10**12), square)
    assert (len(squares), squares[0], squares[-1]) == (10**12 - 3, 9, (10**12 - 1) ** 2)
    assert made == [3, 10**12 - 1]
    tail = squares[5:]
    assert (len(tail), tail[1]) == (10**12 - 8, 81)
    assert made == [3, 10**12 - 1, 9]


def test_it_is_a_sequence():
    words = LazySequence([1, 2, 3], str)
    assert list(words[:2]) == ["1", "2"]
    assert "3" in words
    assert not words[3:]
    with pytest.raises(IndexError):
        words[3]
