import bisect
import hashlib
import itertools
import pickle
import random
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from apache_beam.testing.util import assert_that, equal_to

from components.beam import record_files
from components.example_gen import example_encoder, row_files

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def row(word):
    """Returns the serialized tf.Example of a row with this word."""
    words = tf.train.Feature(bytes_list=tf.train.BytesList(value=[word.encode()]))
    example = tf.train.Example(features=tf.train.Features(feature={"word": words}))
    return example.SerializeToString(deterministic=True)


def write(folder, words, num_files, batch_size=1_000):
    """Returns the rows of each file, by split: of five buckets, train has three."""
    splits = {"train": folder / "Split-train", "eval": folder / "Split-eval"}
    for split in splits.values():
        split.mkdir(parents=True)
    prefixes = [str(split / "rows") for split in splits.values()]
    batches = [
        pa.record_batch({"word": pa.array(words[begin : begin + batch_size], pa.binary())})
        for begin in range(0, len(words), batch_size)
    ]
    with beam.Pipeline(RUNNER) as pipeline:
        written = (
            pipeline
            | beam.Create(batches)
            | row_files.WriteRows(prefixes, [3, 5], column=("", ()), num_files=num_files)
        )
        assert_that(written, equal_to(list(range(num_files))))
    return {
        name: [list(record_files.read_records(str(file))) for file in sorted(split.iterdir())]
        for name, split in splits.items()
    }


def test_a_digest_decides_split_file_and_place(tmp_path):
    words = [f"row {number}" for number in range(200)]
    found = write(tmp_path, words, num_files=3)
    rows = [row(word) for word in words]
    digests = {row: hashlib.sha256(row).hexdigest() for row in rows}
    in_order = sorted(rows, key=digests.__getitem__)
    buckets = {row: int(digest, 16) % 5 for row, digest in digests.items()}
    assert [row for file in found["train"] for row in file] == [row for row in in_order if buckets[row] < 3]
    assert [row for file in found["eval"] for row in file] == [row for row in in_order if buckets[row] >= 3]
    for number, file in enumerate(found["train"]):
        assert len(file) > 20
        firsts = [int(digests[row][:8], 16) / 16**8 for row in file]
        assert number / 3 <= min(firsts) <= max(firsts) < (number + 1) / 3


def test_copies_have_digests_of_their_own(tmp_path):
    words = ["a"] * 100 + ["b"] * 100
    random.Random(1).shuffle(words)
    found = write(tmp_path, words, num_files=1)
    (train,), (held_out,) = found["train"], found["eval"]
    copies = {}
    for one in (row("a"), row("b")):
        copies[hashlib.sha256(one).digest()] = one
        for number in range(1, 100):
            copies[hashlib.sha256(one + b"copy %d" % number).digest()] = one
    expected = [copies[digest] for digest in sorted(copies) if int.from_bytes(digest, "big") % 5 < 3]
    assert train == expected
    assert len(train) + len(held_out) == 200
    assert sum(pair == (row("a"), row("b")) for pair in itertools.pairwise(train)) > 20  # mixed


@pytest.mark.parametrize("num_files", [1, 2])
def test_neither_batches_nor_the_order_of_rows_matter(tmp_path, monkeypatch, num_files):
    words = [f"row {number % 70}" for number in range(200)]
    expected = write(tmp_path / "one", words, num_files)
    assert sorted(one for split in expected.values() for file in split for one in file) == sorted(
        map(row, words)
    )
    random.Random(2).shuffle(words)
    monkeypatch.setattr(example_encoder, "_MAX_ROWS", 7)
    assert write(tmp_path / "many", words, num_files, batch_size=30) == expected


@pytest.mark.more
def test_rows_on_the_way_to_their_file_are_not_held_by_beam(tmp_path):
    words = [f"{number:01000d}" for number in range(20_000)]  # 20 MB
    batch = pa.record_batch({"word": pa.array(words, pa.binary())})
    spill = row_files._Spill(str(tmp_path / "Split-train" / "rows"), [1], ("", ()), num_files=4)

    def check(found):
        assert sorted(number for number, _ in found) == [0, 1, 2, 3]
        assert len(pickle.dumps(found)) < 2_000
        (path,) = {path for _, (path, _) in found}
        assert Path(path).parent == tmp_path / ".unfinished"
        parts = [part for _, spilled in found for part in row_files._parts(*spilled)]
        assert sum(len(part.sizes) for part in parts) == 20_000

    with beam.Pipeline(RUNNER) as pipeline:
        assert_that(pipeline | beam.Create([batch]) | beam.ParDo(spill), check)


def test_files_without_rows_are_written(tmp_path):
    found = write(tmp_path, ["a"], num_files=4)
    assert sorted(len(file) for split in found.values() for file in split) == [0] * 7 + [1]
    assert all(len(split) == 4 for split in found.values())


def test_numbers_of_files_are_exact():
    for count in (1, 3, 1_000, 2**32 - 1):
        numbers = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
        numbers += [random.Random(count).getrandbits(64) for _ in range(1_000)]
        found = row_files._scaled(np.array(numbers, np.uint64), count)
        assert found.tolist() == [number * count >> 64 for number in numbers]


def test_splits_and_order_are_those_of_whole_digests():
    words = [hashlib.sha256(b"%d" % number).digest() for number in range(2_000)]
    words += [bytes(32), b"\xff" * 32, bytes(31) + b"\1", b"\1" + bytes(31), b"\1\0\1" + bytes(29)]
    digests = np.frombuffer(b"".join(words), "S32")
    for bounds in ([1], [2, 3], [3, 5, 1_000_003], [1, 2**31 - 1]):
        expected = [bisect.bisect(bounds, int.from_bytes(word, "big") % bounds[-1]) for word in words]
        assert row_files._assign_splits(digests, bounds).tolist() == expected
    assert [words[place] for place in np.argsort(digests)] == sorted(words)
