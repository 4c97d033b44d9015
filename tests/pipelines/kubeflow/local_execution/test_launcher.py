import re
import warnings
from dataclasses import replace

import pytest

from pipelines.kubeflow.local_execution.launcher import ContainerFailedError
from tests.pipelines.kubeflow.local_execution.little_pipelines import compiled, container, workflow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kfp import dsl, kubernetes

ENVIRONMENT = container(
    "environment",
    {"said": dsl.OutputPath(str)},
    "print('to the log'); pathlib.Path(sys.argv[1]).write_text("
    "','.join(f'{key}={os.environ.get(key)}' for key in ('A', 'KFP_RUN_ID', 'WORD', 'MINE')))",
    lambda given: given["said"],
)


def launch(tmp_path, change, component=ENVIRONMENT, added_lines=None):
    def pipeline():
        change(component())

    found = compiled(pipeline, tmp_path)
    (task,) = found.specification["root"]["dag"]["tasks"].values()
    launcher = workflow(found, tmp_path, run_id="run-3").launcher
    started = launcher.engine

    def engine(given):
        return replace(started(given), added_lines=added_lines)

    return replace(launcher, engine=engine).launch("task", found.component(task), {})


def settings(task):
    task.set_env_variable("A", "1")
    kubernetes.use_field_path_as_env(task, "KFP_RUN_ID", "metadata.labels['pipeline/runid']")
    kubernetes.use_secret_as_env(task, "login", {"password": "WORD"})


def test_a_container_has_the_environment_of_the_pipeline_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("WORD", "secret")
    monkeypatch.setenv("MINE", "of the caller")
    found = launch(tmp_path, settings)
    assert found == {"said": "A=1,KFP_RUN_ID=run-3,WORD=secret,MINE=None"}
    assert (tmp_path / "logs" / "task.log").read_text() == "to the log\n"


def test_a_secret_must_be_given(tmp_path, monkeypatch):
    monkeypatch.delenv("WORD", raising=False)
    with pytest.raises(ContainerFailedError, match="WORD to the value of the key 'password'"):
        launch(tmp_path, settings)


FAIL = container("fail", {}, "print('first', file=sys.stderr); print('the reason\\n'); sys.exit(2)")
SLEEP = container("sleep", {}, "import time; time.sleep(600)")
FORGET = container("forget", {"said": dsl.OutputPath(str)}, "", lambda given: given["said"])


def test_the_last_line_is_the_reason(tmp_path):
    with pytest.raises(ContainerFailedError, match=r"^the reason$") as caught:
        launch(tmp_path, lambda task: None, FAIL)
    assert caught.value.exit_code == 2
    assert caught.value.log == tmp_path / "logs" / "task.log"
    assert list((tmp_path / "containers").iterdir()) == []


def test_what_the_engine_adds_is_not_the_reason(tmp_path):
    with pytest.raises(ContainerFailedError, match=r"^first$"):
        launch(tmp_path, lambda task: None, FAIL, re.compile("the reas.n"))


def test_a_container_that_takes_too_long_is_ended(tmp_path):
    with pytest.raises(ContainerFailedError, match="task: it took longer than 1 s"):
        launch(tmp_path, lambda task: kubernetes.set_timeout(task, 1), SLEEP)


def test_a_parameter_must_be_written(tmp_path):
    with pytest.raises(ContainerFailedError, match="has not written its output parameter 'said'"):
        launch(tmp_path, lambda task: None, FORGET)


def test_an_image_is_another_engine(tmp_path):
    def pipeline():
        ENVIRONMENT()

    found = compiled(pipeline, tmp_path)
    launcher = workflow(found, tmp_path).launcher
    asked = []

    def engine(given):
        asked.append(given)
        return launcher.engine(given)

    (task,) = found.specification["root"]["dag"]["tasks"].values()
    replace(launcher, engine=engine, mounts=(tmp_path,)).launch("task", found.component(task), {})
    (given,) = asked
    assert given.image == "none"
    assert given.mounts == (tmp_path,)
    assert given.arguments[:2] == ("python", "-S")
