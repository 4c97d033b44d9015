"""Spans through the whole pipeline: a window of them, and the same data under the next names."""

import json
import random
import shutil

import pytest
import tensorflow as tf


def write(folder, number, num_rows=300):
    """Writes the rows of a span, all of whose sizes are between `number` and `number + 0.9`."""
    draw = random.Random(number)
    file = folder / f"span-{number}" / "v1" / "sales.csv"
    file.parent.mkdir(parents=True)
    lines = ["size,weight,y"]
    for _ in range(num_rows):
        size, weight = draw.uniform(0, 0.9), draw.uniform(0, 10)
        label = "big" if weight + draw.gauss(0, 0.5) > 5 else "small"
        lines.append(f"{number + size:.3f},{weight:.3f},{label}")
    file.write_text("\n".join(lines) + "\n")


def spans_read(root):
    """Returns the spans whose rows CsvExampleGen has written."""
    files = [str(file) for file in root.glob("artifacts/CsvExampleGen/*/examples/Split-*/*")]
    records = tf.data.TFRecordDataset(files, "GZIP", buffer_size=1 << 18)
    examples = map(tf.train.Example.FromString, records.as_numpy_iterator())
    return {int(row.features.feature["size"].float_list.value[0]) for row in examples}


@pytest.mark.slow
def test_a_window_is_read_and_the_same_data_under_the_next_names_are_unchanged(
    run_pipeline, warm_command, tmp_path
):
    def run(spans):
        data = tmp_path / "span-{SPAN}" / "v{VERSION}"
        return run_pipeline(
            data, root, "trainer.train_steps=100", "trainer.model=linear", f"data.spans={spans}"
        )

    for number in (8, 9, 10):
        write(tmp_path, number)
    (tmp_path / "span-11").mkdir()  # nothing is in it yet
    root = tmp_path / "root"
    code, line, shown = run("last 2")
    assert (code, line["status"]) == (0, "pushed"), shown[-2_000:]
    assert line["spans"] == [
        {"span": number, "version": 1, "num_files": 1} for number in (9, 10)
    ]  # fmt: skip
    assert spans_read(root) == {9, 10}
    assert "span 11 has no data file (it is empty): it is skipped" in shown

    (tmp_path / "span-11").rmdir()
    for number in (9, 10):
        shutil.copytree(tmp_path / f"span-{number}", tmp_path / f"span-{number + 2}")
    code, line, shown = run("11-12")
    assert code == 0, shown[-2_000:]
    assert (line["status"], [span["span"] for span in line["spans"]]) == ("unchanged", [11, 12])
    assert "= Transform  unchanged, reused" in shown

    listed = json.loads(warm_command("runs", "--json", "--root", root).stdout)
    assert [[span["span"] for span in record["spans"]] for record in listed] == [[9, 10], [11, 12]]
