"""Rows divided by time and by files, through the whole pipeline."""

import random
from pathlib import Path

import pytest
import tensorflow as tf

NUM_ROWS = 600


def rows(seed):
    draw = random.Random(seed)
    for number in range(NUM_ROWS):
        size = draw.uniform(0, 10)
        yield [f"2021-{number % 12 + 1:02d}-{number % 28 + 1:02d}", f"{size:.3f}",
               "big" if size + draw.gauss(0, 0.5) > 5 else "small"]  # fmt: skip


def write(file, table):
    file.write_text("\n".join(",".join(row) for row in (["sold", "size", "y"], *table)) + "\n")


def cells(root, split, column):
    files = root.glob(f"artifacts/CsvExampleGen/*/examples/Split-{split}/*")
    dataset = tf.data.TFRecordDataset([str(file) for file in files], "GZIP")
    examples = map(tf.train.Example.FromString, dataset.as_numpy_iterator())
    return [row.features.feature[column].bytes_list.value[0].decode() for row in examples]


def splits(root, component):
    return {folder.name for folder in root.glob(f"artifacts/{component}/*/*/Split-*")}


@pytest.mark.slow
def test_the_newest_rows_test_and_those_before_them_evaluate(run_pipeline, tmp_path):
    write(tmp_path / "data.csv", rows(1))
    settings = ("split.by=time", "split.column=sold", "split.test=0.2", "trainer.model=linear")
    settings += ("trainer.train_steps=200",)
    code, line, shown = run_pipeline(tmp_path / "data.csv", tmp_path / "root", *settings)
    assert code == 0, shown[-2_000:]
    assert line["metrics"]["auc"] > 0.9
    parts = {split: cells(tmp_path / "root", split, "sold") for split in ("train", "eval", "test")}
    assert sum(map(len, parts.values())) == NUM_ROWS
    # ISO dates are in the order of their text.
    assert max(parts["train"]) < min(parts["eval"]) <= max(parts["eval"]) < min(parts["test"])
    assert [len(part) / NUM_ROWS for part in parts.values()] == pytest.approx(
        [8 / 15, 4 / 15, 1 / 5], abs=0.1
    )
    assert f"split: {len(parts['test'])} rows from {min(parts['test'])}" in shown
    for component in ("StatisticsGen", "Transform"):
        assert splits(tmp_path / "root", component) == {"Split-train", "Split-eval"}
    # Another third of the rows has another AUC.
    tested = line["test_metrics"]
    assert (tested["example_count"], line["metrics"]["example_count"]) == tuple(
        map(len, (parts["test"], parts["eval"]))
    )
    assert 0.9 < tested["auc"] != line["metrics"]["auc"]
    last = f"On the {len(parts['test'])} test rows, which nothing else used: auc {tested['auc']:.5g}, "
    assert shown.rstrip().splitlines()[-1].strip().startswith(last)
    assert last in Path(line["report"]).read_text()


def test_files_with_different_labels_end_the_run_before_the_training(run_pipeline, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    table = sorted(rows(2), key=lambda row: row[2])  # as a file that was sorted and cut in two
    write(data / "train.csv", table[:400])
    write(data / "eval.csv", table[400:])
    settings = ("split.by=files", "split.train=train.csv", "split.eval=eval.csv")
    code, line, shown = run_pipeline(data, tmp_path / "root", *settings)
    assert code == 2
    reason = line["reason"]
    assert "CsvExampleGen: the splits differ in the label: " in reason
    assert "chi-square test: p = " in reason
    assert (len(cells(tmp_path / "root", "train", "y")), "Trainer" in shown) == (400, False)
