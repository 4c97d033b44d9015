import pytest

from pipelines.serving.server.request import HeldBytes, RequestError, check_json


@pytest.mark.parametrize(
    ("body", "num_rows"),
    [
        ({"instances": [{}] * 4}, 4),
        ({"examples": [{}] * 4}, 4),
        ({"inputs": [[1.0]] * 4}, 4),
        ({"inputs": {"x": [1], "n": [1] * 5}}, 5),
        ({"inputs": [{"name": "x", "data": [1]}, {"name": "n", "data": [1] * 6}]}, 6),
    ],
)
def test_rows_are_counted_in_each_form_of_a_body(body, num_rows):
    check_json(body, num_rows, 100)
    with pytest.raises(RequestError, match=f"has {num_rows} rows; {num_rows - 1} are") as raised:
        check_json(body, num_rows - 1, 100)
    assert raised.value.status == 413


@pytest.mark.parametrize("body", [None, [], {}, {"inputs": 7}, {"inputs": [{"data": {}}, 7]}])
def test_a_body_without_rows_is_left_to_the_interface(body):
    check_json(body, 3, 100)


def test_a_context_counts_for_each_example():
    body = {"context": {"city": "x" * 100}, "examples": [{}] * 10}
    check_json(body, 10, 1_200)  # 112 bytes of JSON, 10 times
    with pytest.raises(RequestError, match="The context is too large") as raised:
        check_json(body, 10, 1_000)
    assert raised.value.status == 413


def test_bytes_are_held_until_their_request_ends_and_small_ones_whatever_large_ones_hold():
    held = HeldBytes(10)
    with held.request() as hold:
        hold(6)
        hold(2)
        with held.request() as hold_other:
            hold_other(2)
            with pytest.raises(RequestError, match="holds 10 bytes of requests") as raised:
                hold_other(1)
    assert (raised.value.status, raised.value.headers) == (503, {"Retry-After": "1"})
    with held.request() as hold:
        hold(10)
    held = HeldBytes(10, small_bytes=3)
    with held.request() as hold, held.request() as hold_small:
        hold(10)
        hold_small(2)
        hold_small(1)
        with pytest.raises(RequestError, match="holds 13 bytes of requests"):
            hold_small(1)
