import pytest

from components.beam import record_files
from components.beam.example_batches import batches, find_files


def write(path, records):
    record_files.write_records(str(path), records)
    return str(path)


def test_a_batch_ends_at_a_number_of_records_or_bytes(tmp_path):
    records = [b"%d" % number for number in range(25)]
    found = list(batches(write(tmp_path / "a.gz", records), max_examples=10))
    assert found == [records[:10], records[10:20], records[20:]]
    records = [b"x" * size for size in (3, 3, 4, 1, 30, 5, 5)]
    path = write(tmp_path / "a.gz", records)
    sizes = [list(map(len, batch)) for batch in batches(path, max_bytes=10)]
    assert sizes == [[3, 3, 4], [1], [30], [5, 5]]
    assert list(batches(write(tmp_path / "a.gz", []))) == []


def test_a_pattern_without_files_is_an_error(tmp_path):
    (tmp_path / "a.gz").touch()
    with pytest.raises(FileNotFoundError, match=r"No file of examples matches .*b\*"):
        find_files([str(tmp_path / "a*"), str(tmp_path / "b*")])
