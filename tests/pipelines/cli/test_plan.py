import re
import sqlite3
from contextlib import closing

import pytest

from pipelines.cli.plan import plan_command
from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.runs.plan.description import describe_plan, write_plan_file
from pipelines.runs.plan.inputs import RunRequest
from pipelines.runs.plan.run_plan import plan_run


def test_the_plan_says_all_that_a_run_would_and_writes_nothing(data, tmp_path):
    config = load_config(data=str(data), label="y", settings=("split.by=time", "split.column=x"))
    _, lines = describe_plan(config)
    text = "\n".join(lines)
    for part in (
        "40 rows in 1 file; fields are separated by commas",
        "split by time (x)",
        "binary problem: 'y' with 2 classes from 1 numeric",
        "\npositive class: '1', 50 % of the rows; predicted at p > 0.5\n",
        "i split: 14 rows from 26.5 on evaluate, 26 train",
    ):
        assert part in text
    assert list(tmp_path.iterdir()) == [data]


def test_the_plan_says_how_long_a_run_takes_unless_it_is_short(data):
    config = load_config(data=str(data), label="y")
    # 40 s, and 15 times the 20 s of the plan.
    lines = describe_plan(config, clock=iter([5.0, 25.0]).__next__)[1]
    assert "estimated run time: about 6 minutes (extrapolated from the 20 s of this plan)" in lines
    lines = describe_plan(config, clock=iter([5.0, 7.0]).__next__)[1]
    assert not any("estimated run time" in line for line in lines)
    # 40 s, 15 times 2 s, and 9 s for each fold but the first: 115 s instead of 70.
    data.write_text("x,y\n" + "".join(f"{row + 0.5},{row * 7 % 3 % 2}\n" for row in range(300)))
    lines = describe_plan(config, clock=iter([0.0, 2.0]).__next__)[1]
    assert "estimated run time: about 2 minutes (extrapolated from the 2 s of this plan and 6 folds)" in lines


def test_the_plan_says_the_spans(spans, tmp_path):
    config = load_config(data=spans, label="y", settings=("data.spans=last 5",))
    plan, lines = describe_plan(config)
    assert lines[:2] == [
        f"spans 8..10 (version 1) of {spans}",
        "120 rows in 3 files; fields are separated by commas and quoted by double quotes; utf-8",
    ]
    assert "! data.spans = 'last 5': there are only 3" in lines
    write_plan_file(config, plan, tmp_path / "new.toml")
    assert '\npath = "span-{SPAN}/v{VERSION}"\n' in (tmp_path / "new.toml").read_text()
    again = load_config(tmp_path / "new.toml")
    assert (again.data.path, again.data.spans) == (spans, "last 5")


def test_the_plan_of_a_query(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x REAL, y INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(row + 0.5, row % 2) for row in range(40)])
    path = f"sqlite:///{tmp_path}/${{SHOP}}.db"
    with pytest.raises(BadInputError, match="needs the environment variable SHOP"):
        describe_plan(load_config(data=path, label="y", settings=["data.query=SELECT * FROM t"]))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SHOP", "shop")
        config = load_config(data=path, label="y", settings=["data.query=SELECT * FROM t"])
        plan, lines = describe_plan(config)
    assert lines[0] == "40 rows in 1 file; Parquet; utf-8"
    write_plan_file(config, plan, tmp_path / "new.toml")
    again = load_config(tmp_path / "new.toml")
    assert (again.data.path, again.data.query) == (path, "SELECT * FROM t")


def test_a_copy_of_the_label_is_said_and_does_not_stop(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a,y\n" + "".join(f"{'uv'[row % 2]},{'pq'[row % 2]}\n" for row in range(60)))
    _, lines = describe_plan(load_config(data=str(file), label="y"))
    assert lines[-1].startswith("! `run` stops at 'a', because it is target leakage")
    given = load_config(data=str(file), label="y", settings=("columns.a=category",))
    assert not any("`run` stops" in line for line in describe_plan(given)[1])


def test_what_tensorflow_says_when_a_module_imports_it_is_left_out(data, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    module = tmp_path / "talking_module.py"
    module.write_text(
        "import os\n"
        "os.write(2, b'I0000 00:00:1795633960.766429   16522 port.cc:153] oneDNN is on.\\n')\n"
        "os.write(2, b'my module is loaded\\n')\n"
        "def preprocessing_fn(inputs): ...\n"
        "def trainer_fn(fn_args, schema): ...\n"
    )
    settings = [f"module.file={module}", "evaluator.metrics=['auc']"]
    plan_command(data=str(data), label="y", settings=settings)
    out, err = capfd.readouterr()
    assert "used as" in out
    assert err == "my module is loaded\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (['evaluator.metrics=["acu"]'], "Did you mean 'auc'"),
        (['evaluator.metrics=["mean_squared_error"]'], "is not a metric for a binary problem"),
        (['evaluator.slices=[["z"]]'], "no column 'z'"),
        (["evaluator.default_checks=false"], "leaves nothing that a model has to pass"),
        (["evaluator.label=z"], "has no such label"),
        (['example_validator.moving=["z"]'], "no column 'z'"),
        (["schema.path=none.pbtxt"], "none.pbtxt cannot be read"),
        (['schema.path="a\\u0000b"'], "cannot be read"),
        (['beam.args=["--nonsense=1"]'], "Beam has no option"),
        (["split.by=column", "split.column=y"], "split.column = 'y': it is the label"),
        (["split.by=time", "split.column=y"], "split.column = 'y': it is the label"),
    ],
)
def test_the_plan_refuses_what_a_run_refuses(data, display, tmp_path, settings, said):
    config = load_config(data=str(data), label="y", settings=settings)
    with pytest.raises(BadInputError, match=re.escape(said)):
        describe_plan(config)
    with pytest.raises(BadInputError, match=re.escape(said)):
        plan_run(RunRequest(root=Root(tmp_path / "root"), config=config), display)


def test_the_file_is_written_once(data, tmp_path):
    config = load_config(data=str(data), label="y")
    plan, _ = describe_plan(config)
    target = tmp_path / "new.toml"
    write_plan_file(config, plan, target)
    assert load_config(target).data.path == str(tmp_path / "data.csv")
    with pytest.raises(BadInputError, match=r"new\.toml: the file already exists"):
        write_plan_file(config, plan, target)
    with pytest.raises(BadInputError, match="cannot be read: No such file"):
        write_plan_file(config, plan, tmp_path / "none" / "new.toml")
