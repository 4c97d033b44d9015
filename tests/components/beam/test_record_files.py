import gzip
from pathlib import Path

import pytest
import tensorflow as tf

from components.beam import record_files


@pytest.fixture
def split(tmp_path):
    folder = tmp_path / "artifact" / "Split-train"
    folder.mkdir(parents=True)
    return folder


RECORDS = [b"a", b"", b"x" * 70_000, b"b"]


def test_tensorflow_and_read_records_read_what_was_written(split):
    path = split / "data.gz"
    record_files.write_records(str(path), iter(RECORDS))
    assert list(tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator()) == RECORDS
    assert list(record_files.read_records(str(path))) == RECORDS
    assert record_files.numbered("data", 3, 12) == "data-00003-of-00012.gz"  # as by Beam
    # Each has its length and two checksums.
    assert len(gzip.decompress(path.read_bytes())) == sum(len(record) + 16 for record in RECORDS)


def test_the_same_records_are_the_same_bytes(split):
    for name, records in (("a", RECORDS), ("b", RECORDS), ("c", RECORDS[::-1])):
        record_files.write_records(str(split / name), records)
    assert (split / "a").read_bytes() == (split / "b").read_bytes()
    assert (split / "a").read_bytes() != (split / "c").read_bytes()


def test_a_file_appears_when_it_is_complete_and_the_last_attempt_stays(split):
    path = split / "data.gz"

    def records():
        yield b"first"
        assert list(split.iterdir()) == []
        yield b"second"

    record_files.write_records(str(path), records())
    assert list(record_files.read_records(str(path))) == [b"first", b"second"]
    record_files.write_records(str(path), [b"again"])
    assert list(record_files.read_records(str(path))) == [b"again"]
    assert list(split.iterdir()) == [path]


def test_what_a_lost_attempt_has_left_is_removed(split):
    record_files.write_records(str(split / "data.gz"), [b"a"])
    unfinished = Path(record_files.unfinished_folder(str(split)))
    (unfinished / "half").write_bytes(b"half")
    record_files.remove_unfinished([str(split), str(split.parent / "Split-eval")])
    assert list(split.parent.iterdir()) == [split]
    record_files.remove_unfinished([str(split)])
    assert [file.name for file in split.iterdir()] == ["data.gz"]


def test_records_that_tensorflow_has_written_are_read(tmp_path):
    for name, compression in (("data", None), ("data.gz", "GZIP")):
        with tf.io.TFRecordWriter(str(tmp_path / name), compression) as writer:
            for record in (b"a", b"x" * 3_000_000, b""):
                writer.write(record)
        found = list(record_files.read_records(str(tmp_path / name)))
        assert found == [b"a", b"x" * 3_000_000, b""]


@pytest.mark.parametrize("lost", [1, 4, 10, 20])
def test_a_file_that_was_cut_is_an_error(tmp_path, lost):
    with tf.io.TFRecordWriter(str(tmp_path / "data")) as writer:
        writer.write(b"first")
        writer.write(b"second")
    content = (tmp_path / "data").read_bytes()
    (tmp_path / "cut").write_bytes(content[:-lost])  # the last record has 12 + 6 + 4 bytes
    with pytest.raises(EOFError, match="middle of a record"):
        list(record_files.read_records(str(tmp_path / "cut")))
