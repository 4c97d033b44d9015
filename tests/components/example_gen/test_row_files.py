import hashlib
import random
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from components.beam import record_files
from components.example_gen import row_files

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def write(folder: Path, rows: list[bytes], num_files: int) -> dict[str, list[list[bytes]]]:
    """Returns the rows of each file, by split: of five buckets, train has three."""
    splits = {"train": folder / "Split-train", "eval": folder / "Split-eval"}
    for split in splits.values():
        split.mkdir(parents=True)
    prefixes = [str(split / "rows") for split in splits.values()]
    with beam.Pipeline(RUNNER) as pipeline:
        written = (
            pipeline
            | beam.Create(rows)
            | row_files.WriteRows(prefixes, [3, 5], column="", num_files=num_files)
        )
        assert_that(written, equal_to(list(range(num_files))))
    return {
        name: [list(record_files.read_records(str(file))) for file in sorted(split.iterdir())]
        for name, split in splits.items()
    }


def test_a_digest_decides_split_file_and_place(tmp_path: Path) -> None:
    rows = [b"row %d" % number for number in range(200)]
    found = write(tmp_path, rows, num_files=3)
    digests = {row: hashlib.sha256(row).hexdigest() for row in rows}
    in_order = sorted(rows, key=digests.__getitem__)
    buckets = {row: int(digest, 16) % 5 for row, digest in digests.items()}
    assert [row for file in found["train"] for row in file] == [
        row for row in in_order if buckets[row] < 3
    ]
    assert [row for file in found["eval"] for row in file] == [
        row for row in in_order if buckets[row] >= 3
    ]
    for number, file in enumerate(found["train"]):
        assert len(file) > 20
        firsts = [int(digests[row][:8], 16) / 16**8 for row in file]
        assert number / 3 <= min(firsts) <= max(firsts) < (number + 1) / 3


def test_copies_have_digests_of_their_own(tmp_path: Path) -> None:
    rows = [b"a"] * 100 + [b"b"] * 100
    random.Random(1).shuffle(rows)
    found = write(tmp_path, rows, num_files=1)
    (train,), (held_out,) = found["train"], found["eval"]
    copies = {}
    for row in (b"a", b"b"):
        copies[hashlib.sha256(row).digest()] = row
        for number in range(1, 100):
            copies[hashlib.sha256(row + b"copy %d" % number).digest()] = row
    expected = [
        copies[digest] for digest in sorted(copies) if int.from_bytes(digest, "big") % 5 < 3
    ]
    assert train == expected
    assert len(train) + len(held_out) == 200
    assert b"".join(train).count(b"ab") > 20  # they are mixed


def test_more_rows_than_a_chunk_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "_CHUNK_BYTES", 50)
    rows = [b"row %d" % (number % 70) for number in range(200)]
    found = write(tmp_path, rows, num_files=2)
    assert sorted(row for split in found.values() for file in split for row in file) == sorted(rows)


def test_files_without_rows_are_written(tmp_path: Path) -> None:
    found = write(tmp_path, [b"a"], num_files=4)
    assert sorted(len(file) for split in found.values() for file in split) == [0] * 7 + [1]
    assert all(len(split) == 4 for split in found.values())
