import csv

import numpy as np

from benchmarks import pipeline_speed, wide_table
from benchmarks.pipeline_speed import Measurement, Work


def measurement(secs):
    components = {"Transform": secs / 2, "Pusher": 0.01}
    return Measurement(secs, 1.5 * secs, components, 512 << 20, 0.75)


def test_the_table_has_the_ratio_of_what_both_sides_have() -> None:
    table = pipeline_speed.report(measurement(8.0), measurement(2.0))
    rows = {line[:22].strip(): line[22:].split() for line in table.splitlines()}
    assert rows["Transform"] == ["4.00", "1.00", "4.00x"]
    assert rows["Pusher"] == ["0.01", "0.01", "-"]  # too short
    assert rows["imports and the rest"] == ["3.99", "0.99", "4.03x"]
    assert rows["peak memory, MiB"] == ["512", "512", "1.00x"]


def test_a_side_that_was_stopped_has_no_numbers_and_no_larger_work(monkeypatch, capsys) -> None:
    def run_ours(work, data, root):
        root.mkdir()
        return measurement(2.0)

    monkeypatch.setattr(Work, "measure_stock", lambda work, data, root: root.mkdir())  # None
    monkeypatch.setattr(Work, "measure_ours", run_ours)
    works = [Work(f"{size} columns", size, lambda path: path.write_text(""), [], [], 60) for size in (10, 20)]
    measured = pipeline_speed.compare(works, rounds=1)
    assert measured == {"stock TFX": {}, "this project": {10: measurement(2.0), 20: measurement(2.0)}}
    printed = capsys.readouterr().out
    assert printed.count("stock TFX was stopped after 60 s") == 1
    svgs = pipeline_speed.draw("columns", measured)
    assert set(svgs) == {"pipeline-columns.svg", "pipeline-columns-memory.svg"}
    assert "stock" not in svgs["pipeline-columns.svg"]


def test_a_process_that_takes_too_long_is_stopped(tmp_path) -> None:
    command = ["-c", "import time; time.sleep(60)"]
    assert pipeline_speed.run_python(command, tmp_path / "root", limit_secs=0.3) is None


def test_a_tenth_of_a_wide_table_tells_the_label(tmp_path) -> None:
    wide_table.write_csv(tmp_path / "wide.csv", num_rows=400, num_columns=50, seed=2)
    with (tmp_path / "wide.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 400
    assert list(rows[0]) == [*(f"x{column}" for column in range(50)), "label"]
    label = np.array([int(row["label"]) for row in rows])
    numbers = np.array([[float(row[f"x{column}"] or 0) for column in range(50)] for row in rows])
    correlations = [abs(np.corrcoef(column, label)[0, 1]) for column in numbers.T]
    assert min(correlations[:5]) > 0.35 > 0.25 > max(correlations[5:])
