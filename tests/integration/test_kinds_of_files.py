"""The same rows as a compressed CSV with bad rows, and as Parquet: the same model."""

import csv
import gzip
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow  # two whole pipelines

SETTINGS = ("trainer.train_steps=40", "trainer.model=linear")
BAD = {100: "00001,x,1\n", 700: "00002,2024-01-01 10:00:00,1.5,red,1,0,too many\n"}


def write_csv(file: Path) -> None:
    draw = random.Random(4)
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("zip", "day", "price", "word", "size", "y"))
        for number in range(900):
            chance = draw.random()
            writer.writerow(
                (
                    f"{draw.randrange(40):05d}",
                    f"2024-{1 + number % 12:02d}-{1 + number % 28:02d}",
                    "" if number % 50 == 3 else f"{10 * chance:.2f}",
                    draw.choice(("red", "blue", "a, b")),
                    draw.randrange(1_000),
                    int(chance + 0.6 * draw.random() > 0.8),
                )
            )


def examples(root: Path) -> dict[str, bytes]:
    (folder,) = root.glob("artifacts/CsvExampleGen/*/examples")
    return {
        str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("data_tfrecord*"))
    }


def test_the_examples_and_the_model_are_the_same(run_pipeline, warm_command, tmp_path):
    plain, packed, parquet = (tmp_path / name for name in ("rows.csv", "rows.csv.gz", "rows.parquet"))
    write_csv(plain)
    lines = plain.read_text().splitlines(keepends=True)
    for place, line in BAD.items():
        lines.insert(place, line)
    packed.write_bytes(gzip.compress("".join(lines).encode()))
    types = {"zip": pa.string(), "day": pa.date32(), "price": pa.float32()}
    table = pa.csv.read_csv(plain, convert_options=pa.csv.ConvertOptions(column_types=types))
    pq.write_table(table, parquet, row_group_size=100)
    found = {}
    for file, more in ((parquet, ()), (packed, ("data.on_bad_row=quarantine",))):
        root = tmp_path / f"root-{file.suffix}"
        code, line, shown = run_pipeline(file, root, *SETTINGS, *more)
        assert code == 0, shown[-2_000:]
        found[file] = (examples(root), line["metrics"])
        if more:
            assert line["bad_rows"] == {"a wrong number of cells": 2}
            (kept,) = root.glob("runs/details/*/bad_rows.csv")
            with kept.open(newline="") as stream:
                rows = list(csv.DictReader(stream))
            assert [(row["file"], row["line"]) for row in rows] == [
                (str(packed), "101"),
                (str(packed), "701"),
            ]
            assert f"{packed}, line 101" in shown
            assert str(kept) in (root / "runs" / f"{line['run_id']}.html").read_text()
        else:
            predicted = tmp_path / "predicted.csv"
            done = warm_command("predict", "--data", file, "--root", root, "-o", predicted)
            assert done.returncode == 0, done.stderr[-2_000:]
            with predicted.open(newline="") as stream:
                assert len(list(csv.DictReader(stream))) == 900
    assert len(found[parquet][0]) == 2
    assert found[packed] == found[parquet]
