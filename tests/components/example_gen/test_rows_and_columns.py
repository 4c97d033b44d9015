"""The examples of whole files, compared with reading row by row: csv module, `int`, `float`, protobuf."""

import csv
import hashlib
import io
import random

import pytest
import tensorflow as tf

from components.example_gen import csv_file, reading
from components.example_gen.csv_file import CsvFile, read_names
from components.example_gen.example_encoder import serialize

CELLS = {
    "integers": ["0", "-7", "007", "+5", " 12 ", "1_000", "9223372036854775807", ""],
    "floats": ["0.1", "-1e-3", "16777217", "1e400", "nan", "-nan", "Infinity", ".5", " 2.5", ""],
    "beyond": ["9223372036854775808", "1", "2.5", ""],
    "words": ["a,b", 'say "hi"', "x\r\ny", "\n", " ", "é", "true", "0x1A", ""],
    "dates": ["2020-01-31", "12:30", "1", ""],
    "empty": [""],
}


def by_row(text):
    """Returns the serialized tf.Examples of a CSV, by the rules for a single cell."""
    names, *rows = csv.reader(io.StringIO(text, newline=""))
    rows = [[cell.encode() for cell in row] for row in rows if row]
    kinds = [max(map(kind_of, cells)) for cells in zip(*rows, strict=True)]
    found = []
    for row in rows:
        features = {name: feature(cell, kind) for name, cell, kind in zip(names, row, kinds, strict=True)}
        example = tf.train.Example(features=tf.train.Features(feature=features))
        found.append(example.SerializeToString(deterministic=True))
    return found


def kind_of(cell):
    if not cell:
        return 0
    try:
        return 1 if -(2**63) <= int(cell) < 2**63 else 3
    except ValueError:
        pass
    try:
        return 2 if isinstance(float(cell), float) else 3
    except ValueError:
        return 3


def feature(cell, kind):
    cells = [cell] if cell else []
    if kind == 1:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=map(int, cells)))
    if kind == 2:
        return tf.train.Feature(float_list=tf.train.FloatList(value=map(float, cells)))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=cells)) if kind else tf.train.Feature()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("block_bytes", [300, 1 << 20])
def test_examples_are_those_of_reading_row_by_row(tmp_path, monkeypatch, block_bytes, ending):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", block_bytes)
    draw = random.Random(block_bytes)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=ending)
    writer.writerow(CELLS)
    for number in range(120):
        writer.writerow([draw.choice(cells) for cells in CELLS.values()])
        if number % 9 == 0:
            text.write(ending)
    path = tmp_path / "odd.csv"
    path.write_bytes(text.getvalue().encode())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    file = CsvFile(str(path), digest, read_names(str(path)))
    types = reading._infer_types(file, frozenset(), frozenset())
    assert [kind.name for kind in types.values()] == ["INTEGER", "FLOAT", "TEXT", "TEXT", "TEXT", "EMPTY"]
    parts = (rows for batch in reading._read(file, types) for rows in serialize(batch))
    assert [row for rows in parts for row in rows.to_pylist()] == by_row(text.getvalue())
