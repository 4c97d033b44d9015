import re
from dataclasses import replace

import pytest
from kfp import dsl, kubernetes

from pipelines.kubeflow.local_execution.launcher import ContainerFailedError
from tests.pipelines.kubeflow.local_execution.little_pipelines import compiled, container, workflow

ENVIRONMENT = container(
    "environment",
    {"said": dsl.OutputPath(str)},
    "print('to the log'); pathlib.Path(sys.argv[1]).write_text("
    "','.join(f'{key}={os.environ.get(key)}' for key in ('A', 'KFP_RUN_ID', 'WORD', 'MINE')))",
    "said",
)


def launch(tmp_path, change, component=ENVIRONMENT, added_lines=None, mounts=()):
    """Returns the outputs of a container, and what the engine was given."""

    def pipeline():
        change(component())

    found = compiled(pipeline, tmp_path)
    (task,) = found.specification["root"]["dag"]["tasks"].values()
    launcher = workflow(found, tmp_path, run_id="run-3").launcher
    asked = []

    def engine(given):
        asked.append(given)
        return replace(launcher.engine(given), added_lines=added_lines)

    changed = replace(launcher, engine=engine, mounts=mounts)
    return changed.launch("task", found.component(task), {}), asked


def settings(task):
    task.set_env_variable("A", "1")
    kubernetes.use_field_path_as_env(task, "KFP_RUN_ID", "metadata.labels['pipeline/runid']")
    kubernetes.use_secret_as_env(task, "login", {"password": "WORD"})


def test_a_container_has_the_pipelines_environment_alone_and_secrets_must_be_given(tmp_path, monkeypatch):
    monkeypatch.setenv("WORD", "secret")
    monkeypatch.setenv("MINE", "of the caller")
    outputs, (given,) = launch(tmp_path, settings, mounts=(tmp_path,))
    assert outputs == {"said": "A=1,KFP_RUN_ID=run-3,WORD=secret,MINE=None"}
    assert (tmp_path / "logs" / "task.log").read_text() == "to the log\n"
    assert (given.image, given.mounts, given.arguments[:2]) == ("none", (tmp_path,), ("python", "-S"))
    monkeypatch.delenv("WORD", raising=False)
    with pytest.raises(ContainerFailedError, match="WORD to the value of the key 'password'"):
        launch(tmp_path, settings)


FAIL = container("fail", {}, "print('first', file=sys.stderr); print('the reason\\n'); sys.exit(2)")
SLEEP = container("sleep", {}, "import time; time.sleep(600)")
FORGET = container("forget", {"said": dsl.OutputPath(str)}, "", "said")


def test_the_last_line_is_the_reason(tmp_path):
    with pytest.raises(ContainerFailedError, match=r"^the reason$") as caught:
        launch(tmp_path, lambda task: None, FAIL)
    assert caught.value.exit_code == 2
    assert caught.value.log == tmp_path / "logs" / "task.log"
    assert list((tmp_path / "containers").iterdir()) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("component", "change", "added_lines", "message"),
    [
        (
            FAIL,
            lambda task: None,
            re.compile("the reas.n"),
            r"^first$",
        ),  # the engine's line is not the reason
        (SLEEP, lambda task: kubernetes.set_timeout(task, 1), None, "task: it took longer than 1 s"),
        (FORGET, lambda task: None, None, "has not written its output parameter 'said'"),
    ],
    ids=["what the engine adds is not the reason", "it takes too long", "an output is not written"],
)
def test_a_container_that_fails(tmp_path, component, change, added_lines, message):
    with pytest.raises(ContainerFailedError, match=message):
        launch(tmp_path, change, component, added_lines)
