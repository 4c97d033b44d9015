from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.data.column_profile import ValueCounter, ValueCounts


def counts_of(words):
    found = pc.value_counts(pa.array(words, pa.string()))
    return ValueCounts(found.field(0), found.field(1).to_numpy())


@pytest.mark.parametrize("num_batches", [0, 1, 7])
def test_values_are_counted_over_batches_in_the_order_in_which_they_come(num_batches):
    random = np.random.default_rng(3)
    batches = [[f"ü{n}" for n in random.geometric(0.1, 500)] for _ in range(num_batches)]
    counter, expected = ValueCounter(), Counter()
    for number, batch in enumerate(batches):
        counter.add(counts_of(batch))
        expected.update(batch)
        if number == 3:
            assert counter.merge() == expected
    found = counter.merge()
    assert list(found.items()) == list(expected.items())
    assert (found.texts.to_pylist(), found.occurrences.tolist()) == (list(expected), list(expected.values()))
    assert bool(found) == bool(num_batches)
    assert "ü0" not in found


def test_few_values_in_many_batches_are_few_parts():
    counter = ValueCounter()
    for _ in range(1_000):
        counter.add(counts_of(["a", "b", "a"]))
    assert len(counter._parts) < 100
    assert not counter.is_beyond(2)
    assert counter.is_beyond(1)
    assert counter.merge() == {"a": 2_000, "b": 1_000}
