import copy
import sys
import types

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics.stats_impl import generate_statistics_in_memory

from components.parsed_columns import ParsedColumns, readings


@pytest.fixture
def parsed(monkeypatch):
    """Parsed columns `price`, in two formats, and `absent`."""

    def parse(cells, unit):
        numbers = pc.if_else(pc.ends_with(cells, unit), pc.utf8_rtrim(cells, unit), "nan")
        values = numbers.cast(pa.float64()).to_numpy()
        return {"numbers": values, "tens": values / 10}

    monkeypatch.setitem(sys.modules, "units", types.SimpleNamespace(parse=parse))
    return ParsedColumns("units.parse", {"price": {"euros": "€", "dollars": "$"}, "absent": {"x": ""}})


PRICES = pa.array([["7€".encode()], None, [], [b"?"], [b"9$"]], pa.list_(pa.binary()))
BATCH = pa.RecordBatch.from_pydict({"n": pa.array([[1], [2], [3], [4], [5]]), "price": PRICES})


def statistics(batch):
    return generate_statistics_in_memory(batch, tfdv.StatsOptions())


def test_a_cell_without_a_value_is_a_missing_one(parsed):
    added = parsed.add_values(BATCH)
    assert added.schema.names[:2] == ["n", "price"]
    none = [None] * 4
    expected = [[[7.0], *none], [[0.7], *none], [*none, [9.0]], [*none, [0.9]]]
    assert [column.to_pylist() for column in added.columns[2:]] == expected
    empty = pa.RecordBatch.from_pydict({"price": pa.nulls(3)})  # of a batch without a value
    assert parsed.add_values(empty).equals(empty)


def test_all_values_of_an_example_and_cells_that_are_numbers_are_parsed_as_text(parsed):
    batch = pa.RecordBatch.from_pydict({"price": pa.array([["1€", "2$", "3€"], ["4€"]])})
    assert parsed.add_values(batch).columns[1].to_pylist() == [[1.0, 3.0], [4.0]]
    count = ParsedColumns("units.parse", {"n": {"a count": ""}})
    numbers = count.add_values(BATCH).columns[2]
    np.testing.assert_array_equal(numbers.flatten().to_numpy(), [1, 2, 3, 4, 5])
    assert ParsedColumns.from_json(parsed.to_json()) == parsed


def test_the_values_are_described_beside_the_cells_and_change_nothing_else(parsed):
    plain, found = statistics(BATCH), statistics(parsed.add_values(BATCH))
    parsed.nest(found)
    (n, price) = found.datasets[0].features
    read = readings(price)
    assert list(read) == ["euros", "dollars"]  # the format of the data themselves first
    assert [*map(list, read.values())] == [["numbers", "tens"]] * 2
    assert read["dollars"]["tens"].num_stats.median == 0.9
    assert read["euros"]["numbers"].num_stats.common_stats.num_missing == 4
    assert readings(n) == {}
    cells = copy.deepcopy(price)
    del cells.custom_stats[:]
    # A difference of such long texts would take pytest minutes to explain.
    is_same = [*map(str, (n, cells))] == [*map(str, plain.datasets[0].features)]
    assert is_same
    assert tfdv.infer_schema(found) == tfdv.infer_schema(plain)
    assert not tfdv.validate_statistics(found, tfdv.infer_schema(plain)).anomaly_info
