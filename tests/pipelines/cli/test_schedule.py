"""The commands that make and show schedules; here, and on a server of Kubeflow on the loopback."""

import contextlib
import json
import pathlib
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.scheduling.store import scheduler_lock
from tests.pipelines.kubeflow.kfp_server import KfpServer
from tests.pipelines.steps.conftest import Team

KUBEFLOW = """\
name = "trips"
[data]
path = "/mnt/p/data.csv"
label = "y"
[kubeflow]
image = "own:1"
pipeline_root = "minio://artifacts/v2"
root = "/mnt/p/root"
[[kubeflow.volumes]]
claim = "p"
path = "/mnt/p"
"""


def invoke(*words, code=0):
    result = CliRunner().invoke(app, ["schedule", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def here(data, tmp_path, monkeypatch):
    """A folder with a configuration."""
    (tmp_path / "trips.toml").write_text(f'name = "trips"\n[data]\npath = "{data}"\nlabel = "y"\n')
    (tmp_path / "kubeflow.toml").write_text(KUBEFLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_schedule_from_its_beginning_to_its_end(here):
    created = invoke("create", "--config", "trips.toml", "--cron", "0 3 * * *")
    made = json.loads(created.stdout)
    assert made["name"] == "trips"
    assert made["next"].endswith("T03:00:00+00:00")
    assert (here / "pipeline_root" / "schedules" / "trips.json").is_file()
    (listed,) = json.loads(invoke("list", "--json").stdout)
    assert (listed["name"], listed["enabled"], listed["late"]) == ("trips", True, 0)
    assert listed["next"] == made["next"]
    table = invoke("list")
    assert "0 3 * * * (UTC)" in table.stdout
    hint = "No run will start, because no scheduler is running in"
    assert hint in created.stderr
    assert hint in table.stderr
    with scheduler_lock(here / "pipeline_root" / "schedules"):
        assert hint not in invoke("list").stderr
    invoke("disable", "trips")
    assert json.loads(invoke("list", "--json").stdout)[0]["next"] is None
    invoke("enable", "trips")
    invoke("delete", "trips")
    assert json.loads(invoke("list", "--json").stdout) == []
    assert "no schedules" in invoke("list").stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_list_names_a_copy_of_a_schedule(here, options):
    invoke("create", "--config", "trips.toml", "--every", "1h")
    (here / "pipeline_root" / "schedules" / "trips (copy).json").write_text("{}")
    listed = invoke("list", *options)
    assert "trips (copy).json is not the file of a schedule" in listed.stdout + listed.stderr


def test_what_cannot_be_made(here):
    refused = invoke("create", "--config", "trips.toml", "--every", "soon", code=2)
    assert "--every takes numbers with their units" in refused.stderr
    assert refused.stdout == ""
    pathlib.Path("pipeline_root").mkdir()
    for command in ("enable", "disable", "delete"):
        assert "There are no schedules" in invoke(command, "trips", code=2).stderr


def test_a_schedule_on_kubeflow(here):
    with contextlib.closing(KfpServer()) as server:
        host = ("--host", server.url)
        ended = invoke("create", "--config", "kubeflow.toml", "--cron", "0 3 * * *", *host)
        made = json.loads(ended.stdout.splitlines()[-1])  # kfp says where it uploads to
        (sent,) = server.recurring.values()
        assert made["recurring_run_id"] == sent["recurring_run_id"]
        assert sent["trigger"]["cron_schedule"]["cron"] == "0 0 3 * * *"
        refused = invoke("create", "--config", "kubeflow.toml", "--every", "6h", *host, code=2)
        assert "already has a schedule 'trips'" in refused.stderr
        words = ("--every", "6h", "--missed", "catch-up", "--max-concurrency", "2", "--name", "b")
        invoke("create", "--config", "kubeflow.toml", *words, *host)
        listed = {one["name"]: one for one in json.loads(invoke("list", "--json", *host).stdout)}
        assert listed["trips"]["when"] == "0 0 3 * * *"
        assert (listed["b"]["missed"], listed["b"]["max_concurrency"]) == ("catch-up", 2)
        invoke("disable", "b", *host)
        assert [one["status"] for one in server.recurring.values()] == ["ENABLED", "DISABLED"]
        assert "every 21600s" in invoke("list", *host).stdout
        invoke("enable", "b", *host)
        assert [one["status"] for one in server.recurring.values()] == ["ENABLED", "ENABLED"]
        invoke("delete", "b", *host)
        assert [one["display_name"] for one in server.recurring.values()] == ["trips"]
        refused = invoke("delete", "b", *host, code=2)
        assert "There is no schedule 'b'" in refused.stderr
    assert not (here / "pipeline_root").exists()


def test_parameters_of_a_schedule_on_kubeflow(here):
    with contextlib.closing(KfpServer()) as server:
        host = ("--host", server.url)
        create = ("create", "--config", "kubeflow.toml", "--cron", "0 3 * * *", *host)
        invoke(*create, "--param", "train_steps=70")
        (sent,) = server.recurring.values()
        assert sent["runtime_config"]["parameters"] == {"train_steps": 70}
        assert "train_steps=70" in invoke("list", *host).stdout
        ended = invoke(*create, "--replace")
        assert "! the previous schedule set --param train_steps=70; the new schedule does not" in ended.stderr
        assert json.loads(ended.stdout.splitlines()[-1])["dropped_parameters"] == {"train_steps": 70}
    refused = invoke(*create[:-2], "--param", "train_steps=70", code=2)
    assert "--param is for --host" in refused.stderr


def test_a_server_that_is_not_there(here):
    refused = invoke("list", "--host", "http://127.0.0.1:1", code=1)
    assert "cannot be reached" in refused.stderr


HEAVY = ("tensorflow", "tfx", "kfp", "apache_beam", "ml_metadata", "pandas")


@pytest.mark.parametrize("words", [("--help",), ("create", "--help"), ("list",), ("check",), ("metrics",)])
def test_nothing_heavy_is_imported(here, words):
    invoke("create", "--config", "trips.toml", "--cron", "0 3 * * *")
    code = (
        "import sys\nfrom pipelines.cli.app import app\n"
        f"try:\n    app(['schedule', *{words!r}], prog_name='p')\nexcept SystemExit:\n    pass\n"
        f"found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "print('heavy:', found)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stdout.splitlines()[-1] == "heavy: []", ended.stderr


def test_a_schedule_of_a_tfx_pipeline_on_kubeflow(here):
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
    with contextlib.closing(KfpServer()) as server:
        host = ("--host", server.url, "--cron", "0 3 * * *")
        words = ("--pipeline", str(team.file), "--arg", "text=ab", "--config", "team.toml", *code)
        invoke("create", *words, "--param", "num-times=4", *host)
        (sent,) = server.recurring.values()
    assert sent["runtime_config"]["parameters"] == {"num_times": 4}
