import pytest
from tfx_bsl.coders import batch_util

from components.transform.executor import fixed_batches

MEBIBYTE = 1 << 20


def sizes():
    settings = batch_util.GetBatchElementsKwargs(None)
    return settings["min_batch_size"], settings["max_batch_size"]


def test_a_batch_has_one_size_within_and_is_tuned_outside():
    with fixed_batches():
        assert sizes() == (20 * MEBIBYTE, 20 * MEBIBYTE)
        size_of = batch_util.GetBatchElementsKwargs(None)["element_size_fn"]
        assert size_of(b"x" * 5_000) == 5_000
        # Of small examples, 8,192 fill a batch.
        assert 20 * MEBIBYTE / size_of(b"x" * 10) == 8_192
    assert sizes() == (1, 1_000)


def test_an_error_within_leaves_nothing_behind():
    with pytest.raises(KeyError), fixed_batches():
        raise KeyError("x")
    assert sizes() == (1, 1_000)


def test_one_within_another():
    with fixed_batches():
        with fixed_batches():
            pass
        assert sizes() == (20 * MEBIBYTE, 20 * MEBIBYTE)


def test_a_size_that_is_asked_for_is_kept():
    with fixed_batches():
        settings = batch_util.GetBatchElementsKwargs(7)
    assert (settings["min_batch_size"], settings["max_batch_size"]) == (7, 7)
