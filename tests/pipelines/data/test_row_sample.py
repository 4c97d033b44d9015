import pyarrow as pa

from pipelines.data import row_sample
from pipelines.data.row_sample import RowSample


def test_each_second_row_is_kept_of_tables_and_files_that_are_too_large(monkeypatch):
    monkeypatch.setattr(row_sample, "MAX_ROWS", 4)
    sample = RowSample(num_columns=1)
    for start in (0, 3):  # the second batch begins at an odd row
        sample.add(pa.record_batch({"x": [str(start + row) for row in range(3)]}))
    assert sample.column(0).to_pylist() == ["0", "2", "4"]
    monkeypatch.setattr(row_sample, "MAX_ROWS", 2)
    sample = RowSample(num_columns=1)
    for file in range(5):
        sample.add(pa.record_batch({"x": [str(file)]}))
    assert sample.column(0).to_pylist() == ["0", "4"]


def test_long_texts_make_the_sample_smaller_and_one_row_is_always_kept(monkeypatch):
    monkeypatch.setattr(row_sample, "_MAX_BYTES", 1_000)
    sample = RowSample(num_columns=1)
    for row in range(8):  # three rows would be more than 1,000 bytes
        sample.add(pa.record_batch({"x": [f"{row}" * 400]}))
    assert [text[0] for text in sample.column(0).to_pylist()] == ["0", "4"]
    sample.add(pa.record_batch({"x": ["8" * 5_000]}))
    assert [text[0] for text in sample.column(0).to_pylist()] == ["0"]
