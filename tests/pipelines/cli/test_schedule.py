"""The commands that make and show schedules; here, and on a server of Kubeflow on the loopback."""

import json
import pathlib

import pytest

from pipelines.scheduling.store import scheduler_lock
from tests.pipelines.cli.invocation import KUBEFLOW, invoke
from tests.pipelines.cli.test_app import HEAVY, imported_by
from tests.pipelines.steps.conftest import Team


def schedule(*words, code=0):
    return invoke("schedule", *words, code=code)


@pytest.fixture
def here(data, tmp_path, monkeypatch):
    """A folder with a configuration."""
    (tmp_path / "trips.toml").write_text(f'name = "trips"\n[data]\npath = "{data}"\nlabel = "y"\n')
    (tmp_path / "kubeflow.toml").write_text(f'name = "trips"\n{KUBEFLOW}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_schedule_from_its_beginning_to_its_end(here):
    created = schedule("create", "--config", "trips.toml", "--cron", "0 3 * * *")
    made = json.loads(created.stdout)
    assert made["name"] == "trips"
    assert made["next"].endswith("T03:00:00+00:00")
    assert (here / "pipeline_root" / "schedules" / "trips.json").is_file()
    (listed,) = json.loads(schedule("list", "--json").stdout)
    assert (listed["name"], listed["enabled"], listed["late"]) == ("trips", True, 0)
    assert listed["next"] == made["next"]
    table = schedule("list")
    assert "0 3 * * * (UTC)" in table.stdout
    hint = "No run will start, because no scheduler is running in"
    assert hint in created.stderr
    assert hint in table.stderr
    with scheduler_lock(here / "pipeline_root" / "schedules"):
        assert hint not in schedule("list").stderr
    schedule("disable", "trips")
    assert json.loads(schedule("list", "--json").stdout)[0]["next"] is None
    schedule("enable", "trips")
    schedule("delete", "trips")
    assert json.loads(schedule("list", "--json").stdout) == []
    assert "no schedules" in schedule("list").stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_list_names_a_copy_of_a_schedule(here, options):
    schedule("create", "--config", "trips.toml", "--every", "1h")
    (here / "pipeline_root" / "schedules" / "trips (copy).json").write_text("{}")
    listed = schedule("list", *options)
    assert "trips (copy).json is not the file of a schedule" in listed.stdout + listed.stderr


def test_a_schedule_needs_the_label_in_the_files_that_exist(here, data):
    refused = schedule("create", "--data", f"{data.parent}/d*.csv", "--label", "z", "--every", "1h", code=2)
    assert f"{data}, line 1: there is no label column 'z'. Columns: 'x', 'y'." in refused.stderr
    assert not (here / "pipeline_root").exists()
    made = schedule("create", "--data", "later_*.csv", "--label", "z", "--every", "1h")
    assert f"! a run would fail now: No file matches {here}/later_*.csv" in made.stderr
    command = made.stderr.splitlines()[-1].split()
    assert command[-5:] == ["schedule", "run", "--root", "pipeline_root", "--once"]


def test_what_cannot_be_made(here):
    refused = schedule("create", "--config", "trips.toml", "--every", "soon", code=2)
    assert "--every takes numbers with their units" in refused.stderr
    assert refused.stdout == ""
    pathlib.Path("pipeline_root").mkdir()
    for command in ("enable", "disable", "delete"):
        assert "There are no schedules" in schedule(command, "trips", code=2).stderr


@pytest.mark.more
def test_a_schedule_on_kubeflow(here, server):
    host = ("--kubeflow", server.url)
    create = ("create", "--config", "kubeflow.toml", *host)
    made = json.loads(schedule(*create, "--cron", "0 3 * * *").stdout.splitlines()[-1])  # after kfp's lines
    (sent,) = server.recurring.values()
    assert made["recurring_run_id"] == sent["recurring_run_id"]
    assert sent["trigger"]["cron_schedule"]["cron"] == "0 0 3 * * *"
    refused = schedule(*create, "--every", "6h", code=2)
    assert "already has a schedule 'trips'" in refused.stderr
    schedule(*create, "--every", "6h", "--missed", "catch-up", "--max-concurrency", "2", "--name", "b")
    listed = {one["name"]: one for one in json.loads(schedule("list", "--json", *host).stdout)}
    assert listed["trips"]["when"] == "0 0 3 * * *"
    assert (listed["b"]["missed"], listed["b"]["max_concurrency"]) == ("catch-up", 2)
    schedule("disable", "b", *host)
    assert [one["status"] for one in server.recurring.values()] == ["ENABLED", "DISABLED"]
    assert "every 21600s" in schedule("list", *host).stdout
    schedule("enable", "b", *host)
    assert [one["status"] for one in server.recurring.values()] == ["ENABLED", "ENABLED"]
    schedule("delete", "b", *host)
    assert [one["display_name"] for one in server.recurring.values()] == ["trips"]
    assert "There is no schedule 'b'" in schedule("delete", "b", *host, code=2).stderr
    assert not (here / "pipeline_root").exists()


@pytest.mark.usefixtures("here")
def test_parameters_of_a_schedule_on_kubeflow(server):
    create = ("create", "--config", "kubeflow.toml", "--cron", "0 3 * * *")
    host = ("--kubeflow", server.url)
    schedule(*create, *host, "--param", "train_steps=70")
    (sent,) = server.recurring.values()
    assert sent["runtime_config"]["parameters"] == {"train_steps": 70}
    assert "train_steps=70" in schedule("list", *host).stdout
    ended = schedule(*create, *host, "--replace")
    assert "! the previous schedule set --param train_steps=70; the new schedule does not" in ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1])["dropped_parameters"] == {"train_steps": 70}
    refused = schedule(*create, "--param", "train_steps=70", code=2)
    assert "--param is for --kubeflow" in refused.stderr


def test_a_server_that_is_not_there(here):
    refused = schedule("list", "--host", "http://127.0.0.1:1", code=1)  # the earlier name of --kubeflow
    assert "cannot be reached" in refused.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", ["list", "check", "metrics"])
def test_nothing_heavy_is_imported(here, command):
    schedule("create", "--config", "trips.toml", "--cron", "0 3 * * *")
    result, imported = imported_by(here, ["schedule", command], HEAVY)
    assert (result.returncode, imported) == (0, []), result.stderr


def test_a_schedule_of_a_tfx_pipeline_on_kubeflow(here, server):
    team = Team(here)
    team.define("""
        def create_pipeline(text):
            times = RuntimeParameter(name="num-times", ptype=int, default=3)
            write = Write(text=text)
            return pipeline(write, Copy(examples=write.outputs["examples"], times=times))
    """)
    settings = KUBEFLOW.partition("[kubeflow]")[2]
    pathlib.Path("team.toml").write_text(f'[kubeflow]{settings}\n[pipeline]\nfile = "x.py"\n')
    code = ("--set", 'kubeflow.code="/opt/team"')
    host = ("--kubeflow", server.url, "--cron", "0 3 * * *")
    words = ("--pipeline", str(team.file), "--arg", "text=ab", "--config", "team.toml", *code)
    schedule("create", *words, "--param", "num-times=4", *host)
    (sent,) = server.recurring.values()
    assert sent["runtime_config"]["parameters"] == {"num_times": 4}
