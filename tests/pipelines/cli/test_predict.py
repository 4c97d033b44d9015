import sqlite3
from contextlib import closing

import pytest


@pytest.fixture
def root(push):
    push("negated", 3)
    return push("regressor", 5)


def test_predictions_go_to_standard_output_or_to_a_file(warm_command, root, tmp_path):
    (tmp_path / "new.csv").write_text("x,city\n1.5,Oslo\n2,\n")
    result = warm_command("predict", "--root", root, "--data", tmp_path / "new.csv")
    assert result.returncode == 0
    assert result.stdout == "x,city,value\n1.5,Oslo,2.5\n2,,2\n"
    *_, last = result.stderr.splitlines()
    assert last.startswith("2 rows predicted by version 5 in 0.")
    output = tmp_path / "out.csv"
    result = warm_command(
        "predict", "--root", root, "--data", tmp_path / "new.csv", "--version", 3, "-o", output
    )
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].endswith(f" s, written to {output}")
    assert output.read_text().splitlines()[1].startswith("1.5,Oslo,no,")


@pytest.mark.more
def test_the_rows_of_a_query(warm_command, root, tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE t AS SELECT 1.5 AS x, 'Oslo' AS city")
    given = ["--root", root, "--data", "sqlite:///shop.db"]
    result = warm_command("predict", *given, "--query", "SELECT * FROM t", cwd=tmp_path)
    assert result.stdout == "x,city,value\n1.5,Oslo,2.5\n", result.stderr
    assert result.stderr.startswith("! query.parquet has no column 'n'")
    result = warm_command("predict", *given, "--query", "SELECT city AS x FROM t", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("query.parquet, line 2, column 'x': 'Oslo'")


def test_each_prediction_is_explained(warm_command, root, tmp_path):
    (tmp_path / "new.csv").write_text("x,city\n1.5,Oslo\n2,\n")
    arguments = ["--root", root, "--data", tmp_path / "new.csv", "--explain", 1]
    result = warm_command("predict", *arguments)
    assert result.stdout == (
        "x,city,value,base,column_1,contribution_1,contribution_others\n"
        "1.5,Oslo,2.5,2.25,city,0.5,-0.25\n2,,2,2.25,city,-0.5,0.25\n"
    ), result.stderr
    assert f"contributions: compared with 2 rows of {tmp_path / 'new.csv'}" in result.stderr.splitlines()


def test_a_version_that_a_tfx_pipeline_has_pushed(warm_command, root, tmp_path, of_tfx_pipeline):
    of_tfx_pipeline(root)
    (tmp_path / "new.csv").write_text("x;city\n1.5;Oslo\n")
    given = ["--root", root, "--data", tmp_path / "new.csv"]
    result = warm_command("predict", *given)
    assert (result.returncode, result.stdout) == (0, "x,city,value\n1.5,Oslo,2.5\n"), result.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--version", "4"], "There is no version 4 in "),
        (["--root", "absent"], "There is no folder "),
        (["--data", "absent.csv"], "There is no file or folder absent.csv"),
        (["-o", "absent/out.csv"], "There is no folder absent"),
    ],
)
def test_bad_input_ends_with_two_and_one_message(warm_command, root, tmp_path, arguments, message):
    (tmp_path / "new.csv").write_text("x\n1\n")
    given = ["--root", root, "--data", tmp_path / "new.csv"]
    result = warm_command("predict", *given, *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    *before, last = result.stderr.splitlines()
    assert last.startswith(message)
    assert all(line.startswith("! ") for line in before)
