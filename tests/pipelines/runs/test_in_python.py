"""`pipelines.run` and `pipelines.plan` on a CSV's path and on a DataFrame."""

import random
import subprocess
import sys

import pandas as pd
import pytest

import pipelines
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.lock import RootBusyError
from pipelines.root.records import RunRecord
from pipelines.runs.in_python import Run


@pytest.fixture(scope="module")
def frame():
    """`late` follows from `miles`, but for noise."""
    draw = random.Random(5)
    miles = [round(draw.uniform(0, 10), 3) for _ in range(400)]
    return pd.DataFrame(
        {
            "miles": miles,
            "city": [draw.choice(("Oslo", "Rome", None)) for _ in miles],
            "late": ["yes" if value + draw.gauss(0, 0.5) > 5 else "no" for value in miles],
        },
        index=range(1000, 1400),
    )


def test_the_plan_of_a_frame_is_that_of_its_csv(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    of_file = pipelines.plan(data=tmp_path / "rows.csv", label="late", columns={"city": "ignore"})
    of_frame = pipelines.plan(data=frame, label="late", columns={"city": "ignore"})
    assert [(column["name"], column["kind"]) for column in of_frame.columns] == [
        ("miles", "number"),
        ("city", "id"),
        ("late", "boolean"),
    ]
    assert of_frame.columns == of_file.columns
    assert str(of_frame).splitlines()[1:] == str(of_file).splitlines()[1:]
    assert str(of_frame).startswith("400 rows in 1 file; Parquet")


@pytest.mark.more
def test_a_frame_becomes_a_model(frame, tmp_path, capfd):
    settings = {"trainer": {"model": "linear", "train_steps": 300}, "lineage": {"openlineage": "file"}}
    first = pipelines.run(data=frame, label="late", root=tmp_path / "root", **settings)
    assert (first.status, first.reason) == ("pushed", None)
    assert first.metrics["auc"] > 0.9
    assert first.report.is_file()
    assert "✓ Trainer" in capfd.readouterr().err
    assert first.record.config["trainer"]["train_steps"] == 300
    predicted = first.model.predict(pd.DataFrame({"miles": [0.1, 9.9], "city": [None, "Oslo"]}))
    assert list(predicted["class"]) == ["no", "yes"]
    again = pipelines.run(data=frame.reset_index(drop=True), label="late", root=tmp_path / "root", **settings)
    assert again.status == "unchanged"
    assert list(again.model.predict([{"miles": 0.1}])["class"]) == ["no"]
    changed = pipelines.run(data=frame[:300], label="late", root=tmp_path / "root", **settings)
    assert changed.record.num_rows == 300
    assert len(list((tmp_path / "root" / "data").glob("*/frame.parquet"))) == 2


@pytest.mark.more
def test_a_script_shows_its_progress_on_stderr(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    script = "import pipelines, sys; pipelines.run(data=sys.argv[1], label='c', root=sys.argv[2])"
    command = [sys.executable, "-c", script, tmp_path / "rows.csv", tmp_path / "root"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stderr.startswith(f"    checking {tmp_path}/rows.csv\n")
    assert "there is no label column 'c'" in ended.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs data and label, or config, or a TFX pipeline"),
        ({"data": 3, "label": "late"}, "a path or a pandas DataFrame. Received: int"),
        ({"data": pd.DataFrame({"a": [1, "x"]}), "label": "a"}, "values of one type"),
        ({"data": "rows.csv", "label": "late", "parameters": {"a": 1}}, "parameters are for a TFX pipeline"),
        ({"data": "no.csv", "label": "late", "trainer": {"stepz": 1}}, r"trainer\.stepz = 1: there is no"),
        ({"pipeline": object(), "data": "rows.csv"}, "names its data itself. Leave out data"),
        ({"resume": True}, "there is nothing to resume"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(given, message, tmp_path):
    with pytest.raises(BadInputError, match=message):
        pipelines.run(root=tmp_path / "root", **given)


@pytest.mark.parametrize(
    ("label", "cells", "message"),
    [
        ("a", {"a": [*map(str, range(29)), "oops"]}, r"^DataFrame\.iloc\[29\], column 'a': the label 'oops'"),
        ("b", {}, "^the DataFrame: there is no label column 'b'"),
        ("a", {"c": [[1, 2]] * 30}, "^the DataFrame: column 'c' holds list"),
    ],
)
def test_a_fault_in_a_frame_names_its_row(label, cells, message, tmp_path):
    frame = pd.DataFrame({"note": ["two\nlines"] * 30, "a": range(30)} | cells, index=range(100, 130))
    for function, place in ((pipelines.plan, {}), (pipelines.run, {"root": tmp_path / "root"})):
        with pytest.raises(BadInputError, match=message):
            function(data=frame, label=label, **place)


def test_an_error_that_is_not_about_the_frame_stays_what_it_is(frame, tmp_path):
    root = Root(tmp_path)
    with root.lock.exclusively(), pytest.raises(RootBusyError):
        pipelines.run(data=frame, label="late", root=tmp_path)


def test_a_note_on_a_frame_names_its_row(frame):
    infinite = frame.assign(miles=[*frame["miles"][:-1], float("inf")])
    plan = pipelines.plan(data=infinite, label="late", columns={"city": "ignore"})
    assert "the first: DataFrame.iloc[399]: 'inf'" in str(plan)


def test_a_note_on_a_file_names_its_line(frame, tmp_path):
    infinite = frame.assign(miles=[*frame["miles"][:-1], float("inf")])
    infinite.to_csv(tmp_path / "trips.csv", index=False)
    plan = pipelines.plan(data=tmp_path / "trips.csv", label="late", columns={"city": "ignore"})
    assert f"the first: {tmp_path}/trips.csv, line 401: 'inf'" in str(plan)


def test_a_root_that_cannot_be_written_to_is_named(frame, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="file is not a writable folder"):
        pipelines.run(data=frame, label="late", root=tmp_path / "file" / "root")


def test_settings_override_those_of_the_file(frame, tmp_path):
    (tmp_path / "p.toml").write_text('[data]\nlabel = "late"\n[columns]\nmiles = "ignore"\ncity = "ignore"\n')
    plan = pipelines.plan(config=tmp_path / "p.toml", data=frame, columns={"city": "category"})
    assert {column["name"]: column["note"] for column in plan.columns}["miles"] == "by [columns]"
    assert {column["name"]: column["kind"] for column in plan.columns}["city"] == "category"


def test_a_run_without_a_version_has_no_model(tmp_path):
    record = RunRecord(
        run_id="20260102-030405", name="trips", status="not_blessed", reason="auc is low.", config={},
        started="2026-01-02T03:04:05+00:00", data_fingerprint="", log="run.log",
    )  # fmt: skip
    run = Run(record, Root(tmp_path))
    with pytest.raises(BadInputError, match=r"no model: it is not_blessed\. auc is low\. pipelines\.load"):
        run.model  # noqa: B018
    assert (run.report, run.version) == (None, None)
    assert repr(run) == f"<run 20260102-030405 in {tmp_path}: not_blessed: auc is low.>"
