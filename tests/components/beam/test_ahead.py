import pytest

from components.beam.ahead import ahead


def test_working_ahead_keeps_the_order_and_passes_errors_on():
    def items():
        yield from range(5)
        raise ValueError("the sixth")

    found = ahead(items())
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="the sixth"):
        next(found)
