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
        settings = batch_util.GetBatchElementsKwargs(7)  # a size that is asked for is kept
        assert (settings["min_batch_size"], settings["max_batch_size"]) == (7, 7)
        with fixed_batches():
            pass
        assert sizes() == (20 * MEBIBYTE, 20 * MEBIBYTE)
    assert sizes() == (1, 1_000)
    with pytest.raises(KeyError), fixed_batches():
        raise KeyError("x")
    assert sizes() == (1, 1_000)
