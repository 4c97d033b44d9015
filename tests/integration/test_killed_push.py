"""A run that is killed around its push, and the next one: nothing is pushed twice, nothing is left."""

import json
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("killed_push_program.py")


@pytest.mark.slow
def test_the_next_run_finishes_the_push(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(40)))
    result = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "root"), str(data)],
        capture_output=True,
        text=True,
        check=False,
    )
    print(result.stderr[-3_000:])
    assert result.returncode == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 2 * 20
    _print_table(rows)
    versions = {}  # by model, also those that are pruned by now
    for row in rows:
        assert row["killed"] == -9, row  # the moment came
        assert row["rerun"] == 0, row
        for served in (row["served"], row["served_then"]):
            for version, model in served.items():
                assert len(model) == 1, row  # whole, and of one model
                versions.setdefault(model[0], set()).add(version)
        newest = max(row["served_then"], key=int)
        assert row["served_then"][newest] == [row["model"]]
        assert len(row["served_then"]) == 2  # keep
        assert row["left_then"] == [], row
        # The record of a run that has pushed says so, whether it was resumed or left behind.
        has_pushed = [row["model"]] in row["served"].values()
        assert row["status"] == ("pushed" if has_pushed else "interrupted")
        # The root has the schema of its first pushed run, killed or not.
        assert row["schema"] == (row["run_id"] if has_pushed else None), row
        assert (row["schema_then"] == row["run_id"]) == (has_pushed or row["resume"]), row
        assert row["schema_then"], row
        first, *rest = row["records"]
        if row["resume"]:
            assert (first, rest) == (["pushed", newest], [])
        else:
            assert first == (["pushed", newest] if has_pushed else ["interrupted", None])
            assert rest == [["pushed", newest]]
    for row in rows:
        assert len(versions[row["model"]]) == 1, row  # pushed once


def _print_table(rows):
    print(f"{'killed':24}{'next run':10}{'served when killed':20}{'left over':11}{'pushes':8}left then")
    for row in rows:
        found = {**row["served"], **row["served_then"]}
        pushes = sum(model == [row["model"]] for model in found.values())
        print(
            f"{row['moment']:24}{'resumed' if row['resume'] else 'anew':10}"
            f"{'new' if [row['model']] in row['served'].values() else 'old':20}"
            f"{row['left']:<11}{pushes:<8}{len(row['left_then'])}"
        )
