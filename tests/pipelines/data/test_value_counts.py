from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.data import column_profile
from pipelines.data.column_cells import ColumnCells
from pipelines.data.profile import profile_csv
from pipelines.data.value_counts import ValueCounter, ValueCounts


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
    assert (found.texts.to_pylist(), found.occurrences.tolist()) == (
        list(expected),
        list(expected.values()),
    )
    assert bool(found) == bool(num_batches)
    assert "ü0" not in found


def test_values_that_come_again_do_not_count_against_the_limits():
    counter = ValueCounter()
    for _ in range(100):
        counter.add(counts_of(["a", "b", "a"]))
    assert counter.is_within(max_distinct=2, max_bytes=100)
    assert counter.merge() == {"a": 200, "b": 100}
    assert not counter.is_within(max_distinct=1, max_bytes=100)
    assert not counter.is_within(max_distinct=2, max_bytes=1)


def test_long_texts_are_stored_instead_of_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(column_profile, "MAX_DISTINCT_BYTES", 5_000)
    file = tmp_path / "data.csv"
    file.write_text("text,n\n" + "".join(f"{number % 20:0400},{number}\n" for number in range(60)))
    profile = profile_csv([file])
    assert profile.columns["text"].distinct_values is None
    assert profile.columns["n"].num_distinct == 60
    ((texts, occurrences),) = ColumnCells(profile, "text").chunks()
    assert Counter(dict(zip(texts.to_pylist(), occurrences.tolist(), strict=True))) == Counter(
        {f"{number:0400}": 3 for number in range(20)}
    )
