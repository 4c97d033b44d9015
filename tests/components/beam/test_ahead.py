import threading

import pytest

from components.beam.ahead import ahead, map_ahead


def test_working_ahead_keeps_the_order_and_passes_errors_on():
    def items():
        yield from range(5)
        raise ValueError("the sixth")

    found = ahead(items())
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="the sixth"):
        next(found)


def test_values_come_in_order_though_threads_work_at_the_same_time():
    both = threading.Barrier(2, timeout=10)

    def double(item):
        both.wait()  # until two threads are here
        return 2 * item

    assert list(map_ahead(double, range(6))) == [0, 2, 4, 6, 8, 10]


def test_an_error_comes_at_the_place_of_its_item_and_without_items_there_are_no_values():
    found = map_ahead(lambda item: 12 // item, [4, 3, 0, 2])
    assert [next(found), next(found)] == [3, 4]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert list(map_ahead(str, [])) == []
