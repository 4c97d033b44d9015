import json

import pytest
import yaml

from pipelines.cli import kubeflow as kubeflow_commands
from pipelines.cli.run import KubeflowOptions, _run_tfx_pipeline
from pipelines.kubeflow.local_execution import local_run
from pipelines.kubeflow.run_folder import RunFolder
from pipelines.kubeflow.server import submission
from pipelines.root import Root
from pipelines.runs.plan.inputs import RunRequest
from tests.pipelines.cli.invocation import KUBEFLOW, as_options, invoke
from tests.pipelines.kubeflow.loopback import RefusedError
from tests.pipelines.root.test_records import RECORD
from tests.pipelines.steps.conftest import Team

CONFIG = f'name = "taxi"\n{KUBEFLOW}'


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "taxi.toml"
    file.write_text(CONFIG)
    return str(file)


@pytest.fixture
def team(tmp_path):
    """A TFX pipeline of a team's own, with parameters, and its configuration in `team.toml`."""
    team = Team(tmp_path)
    team.define("""
        def create_pipeline(times=3):
            write = Write(text=RuntimeParameter(name="a-text", ptype=str))
            return pipeline(write, Copy(examples=write.outputs["examples"], times=times))
    """)
    team.config = tmp_path / "team.toml"
    kubeflow = KUBEFLOW.partition("[kubeflow]")[2]
    team.config.write_text(f'[kubeflow]\ncode = "/code"{kubeflow}')
    return team


def test_compile_writes_the_yaml_without_the_data(config, tmp_path):
    output = tmp_path / "taxi.yaml"
    invoke("compile", "--config", config, "--param", "trainer.seed", "-o", output)
    specification = next(yaml.safe_load_all(output.read_text()))
    assert specification["schemaVersion"] == "2.1.0"
    assert "trainer_seed" in specification["root"]["inputDefinitions"]["parameters"]


def compiled_defaults(file):
    """Returns the defaults of a compiled pipeline's parameters, and the `[pipeline]` that `Plan` gets."""
    specification = next(yaml.safe_load_all(file.read_text()))
    executors = specification["deploymentSpec"]["executors"]
    arguments = executors["exec-plan"]["container"]["args"]
    config = json.loads(arguments[arguments.index("--config") + 1])
    declared = specification["root"]["inputDefinitions"]["parameters"]
    defaults = {name: parameter["defaultValue"] for name, parameter in declared.items()}
    return defaults, config["pipeline"]


def test_compile_takes_a_pipeline_of_the_users_own(team, tmp_path):
    output = tmp_path / "team.yaml"
    command = ("compile", "--config", team.config, "-o", output)
    words = ("--arg", "times=5", "--param", "a-text=b")
    invoke(*command, "--pipeline", f"{team.file}:create_pipeline", *words)
    defaults, pipeline = compiled_defaults(output)
    assert defaults == {"a_text": "b"}
    assert pipeline["file"] == f"/code/{team.file.name}"
    assert (pipeline["function"], pipeline["arguments"]) == ("create_pipeline", {"times": "5"})

    ran = invoke(*command, "--pipeline", team.file, "--param", "a-text", code=2)
    assert "--param takes name=value. Received: 'a-text'" in ran.stderr

    # The configuration can name it, relative to its own folder.
    source = f'[pipeline]\nfile = "{team.file.name}"\nparameters = {{ a-text = "c" }}\n'
    team.config.write_text(source + team.config.read_text())
    invoke(*command)
    assert compiled_defaults(output)[0] == {"a_text": "c"}


def test_arguments_are_for_a_pipeline_of_the_users_own(config, server, tmp_path):
    for command in (("compile", "-o", tmp_path / "a"), ("submit", "--kubeflow", server.url)):
        ran = invoke(*command, "--config", config, "--arg", "times=5", code=2)
        assert "--arg times=5 is for --pipeline FILE.py:FUNCTION only" in ran.stderr
    assert not server.requests


def test_submit_starts_a_run_of_a_pipeline_of_the_users_own(team, server):
    command = ("submit", "--kubeflow", server.url, "--config", team.config, "--pipeline", team.file)
    ran = invoke(*command, code=2)
    assert "Give --param a-text=VALUE" in ran.stderr
    assert not server.runs
    invoke(*command, "--param", "a-text=d")
    (run,) = server.runs.values()
    assert run["runtime_config"]["parameters"] == {"a_text": "d"}
    (experiment,) = server.experiments.values()
    assert experiment["display_name"] == "team"


def test_a_run_here_compiles_with_its_runtime_parameters(team, monkeypatch):
    def run_locally(root, config, progress, parameters, enable_cache):
        return config.pipeline.parameters, parameters

    monkeypatch.setattr(local_run, "run_locally", run_locally)
    options = KubeflowOptions(local=True, image=None, parameters=("a-text=e",))
    request = RunRequest(root=team.root, runner="kubeflow")
    own = _run_tfx_pipeline(request, str(team.file), [], options, None, None)
    assert own == ({"a-text": "e"}, {})


def test_compile_says_what_has_no_effect_there_and_what_is_wrong(config, tmp_path):
    settings = as_options(("notify.command=tell", "retention.artifacts=3"))
    ran = invoke("compile", "--config", config, *settings, "-o", tmp_path / "taxi.yaml")
    assert "! [notify] has no effect on Kubeflow" in ran.stderr
    assert "[retention]" not in ran.stderr
    ran = invoke(
        "compile", "--config", config, "--set", "kubeflow.root=/else/where", "-o", tmp_path / "a", code=2
    )
    assert "is not on a volume" in ran.output
    assert not (tmp_path / "a").exists()


@pytest.fixture
def never_compiles(monkeypatch):
    """Nothing is compiled for what is refused anyway."""
    monkeypatch.setattr(kubeflow_commands, "_compiled", lambda *given: pytest.fail("it is compiled"))


@pytest.mark.usefixtures("never_compiles")
def test_compile_looks_at_its_output_first(config, tmp_path):
    for output, message in (
        (tmp_path / "nowhere" / "x.yaml", f"-o: the folder {tmp_path / 'nowhere'} does not exist"),
        (tmp_path, f"-o: {tmp_path} is a folder"),
    ):
        assert message in invoke("compile", "--config", config, "-o", output, code=2).stderr


def test_submit_starts_a_run_and_waits_for_it(config, server, monkeypatch):
    monkeypatch.setattr(submission, "_POLL_SECS", 0.0)
    server.states = ["RUNNING", "FAILED"]
    ran = invoke(
        "submit", "--config", config, "--kubeflow", server.url, "--param", "train_steps=70", "--wait", code=1
    )
    line = json.loads(ran.stdout.splitlines()[-1])
    assert line["status"] == "FAILED"
    (run,) = server.runs.values()
    assert line["run_id"] == run["run_id"]
    assert run["runtime_config"]["parameters"] == {"train_steps": 70}
    assert run["service_account"] == "runner"
    (experiment,) = server.experiments.values()
    assert experiment["display_name"] == "taxi"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("state", "status"), [("FAILED", "failed"), ("CANCELED", "interrupted")])
def test_submit_closes_the_record_of_a_run_whose_last_pod_never_started(
    config, server, monkeypatch, tmp_path, state, status
):
    root = Root(tmp_path / "root")

    def wait(self, run_id, timeout_secs):
        root.records.write(RECORD.changed(status="running", kubeflow_run=run_id))
        RunFolder(root, run_id).write_run(RECORD.run_id)
        return state

    monkeypatch.setattr(submission.Server, "wait", wait)
    place = f'kubeflow.volumes=[{{claim = "pipelines", path = "{tmp_path}"}}]'
    given = as_options((f"kubeflow.root={root}", place, f"data.path={tmp_path}/taxi.csv"))
    root.path.mkdir()
    invoke("submit", "--config", config, "--kubeflow", server.url, "--wait", *given, code=1)
    assert root.records.read(RECORD.run_id).status == status


def test_submit_does_not_speak_to_vertex(server, tmp_path):
    config = tmp_path / "vertex.toml"
    config.write_text(CONFIG.replace('service_account = "runner"\n', ""))
    settings = (
        "kubeflow.backend=vertex", "kubeflow.volumes=[]", "kubeflow.root=/gcs/bucket/taxi",
        "kubeflow.pipeline_root=gs://bucket/artifacts", "data.path=/gcs/bucket/taxi.csv",
    )  # fmt: skip
    given = ["--config", config, *as_options(settings)]
    ran = invoke("submit", *given, "--kubeflow", server.url, code=2)
    assert "aiplatform.PipelineJob(" in ran.output
    assert not server.requests
    invoke("compile", *given, "-o", tmp_path / "pipeline.yaml")


def test_submit_with_a_token(config, server, tmp_path):
    server.token = "abc.def"
    (tmp_path / "token").write_text("abc.def\n")
    ran = invoke("submit", "--config", config, "--kubeflow", server.url, "--token-file", tmp_path / "token")
    ran = invoke(
        "submit", "--config", config, "--kubeflow", server.url, "--token-file", tmp_path / "other", code=2
    )
    assert "abc.def" not in ran.output


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("never_compiles")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kubeflow", "localhost:8080"), "--kubeflow takes an address such as"),
        (("--host", "localhost:8080"), "--kubeflow takes an address such as"),  # its earlier name
        (("--cron", "0 3 * * *"), "`schedule create --kubeflow http"),
        (("--param", "steps=3"), "no such parameter"),
        (("--param", "train_steps=many"), "train_steps takes a whole number"),
        (("--param", "train_steps"), "takes name=value"),
    ],
)
def test_submit_refuses_what_the_server_would(config, server, arguments, message):
    ran = invoke("submit", "--config", config, "--kubeflow", server.url, *arguments, code=2)
    assert message in ran.output
    assert not server.runs


def test_a_server_that_refuses(config, server):
    created = server._route

    def refuse(method, path, query, body):
        if path.startswith("pipelines/upload"):
            raise RefusedError(403, "not in this namespace")
        return created(method, path, query, body)

    server._route = refuse
    ran = invoke("submit", "--config", config, "--kubeflow", server.url, code=1)
    assert "403" in ran.output
    assert "not in this namespace" in ran.output
