import json
from types import SimpleNamespace

import pytest

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.kubeflow.compile.task_settings import NEVER_CACHED, apply_settings
from pipelines.kubeflow.step_environment import RETRIES_VARIABLE, UMASK_VARIABLE
from pipelines.kubeflow.training.training_job import VARIABLE


class Task:
    """A stand-in for a task of kfp that takes the same calls."""

    def __init__(self):
        self.calls, self.container_spec = {}, SimpleNamespace(env=None)

    def __getattr__(self, name):
        def call(*values, **named):
            self.calls.setdefault(name, []).append((*values, *named.values()))
            return self

        return call


def applied(component, **settings):
    task = Task()
    given = KubeflowConfig.model_validate({"backend": "vertex", **settings})
    apply_settings(task, given, component)
    return {**task.calls, "env": task.container_spec.env}


def test_steps_that_belong_to_every_run_are_never_cached():
    for component in NEVER_CACHED:
        calls = applied(component, components={component: {"cache": True}})
        assert calls["set_caching_options"] == [(False,)]
    for component in ("Trainer", "Pusher"):  # the key of a step says whether it must run
        assert applied(component)["set_caching_options"] == [(True,)]


def test_retries_are_those_of_the_step_and_the_exit_handler_is_tried_again():
    settings = {"retries": 4, "components": {"Trainer": {"retries": 0}}}
    assert "set_retry" not in applied("Trainer", **settings)
    assert applied("Transform", **settings)["set_retry"] == [(4, "30s")]
    assert applied("Transform", **settings)["env"] == {RETRIES_VARIABLE: "4"}
    assert applied("End")["set_retry"] == [(2, "30s")]
    assert applied("End", retries=4)["set_retry"] == [(4, "30s")]
    assert applied("End", components={"End": {"retries": 1}})["set_retry"] == [(1, "30s")]
    assert "set_retry" not in applied("End", retries=4, components={"End": {"retries": 0}})
    assert "set_retry" not in applied("Record")
    assert applied("End")["env"] == {RETRIES_VARIABLE: "2"}


def test_the_trainer_is_told_of_its_training_job_and_every_step_of_the_umask():
    settings = {"image": "image:1", "training_job": {"poll_secs": 3}}
    ((name, text),) = applied("Trainer", **settings)["env"].items()
    assert name == VARIABLE
    assert json.loads(text)["settings"]["poll_secs"] == 3
    assert not applied("Transform", **settings)["env"]
    settings = {"image": "image:1", "umask": "002", "training_job": {"poll_secs": 3}}
    assert applied("Record", **settings)["env"] == {UMASK_VARIABLE: "002"}
    variables = applied("Trainer", **settings)["env"]
    assert variables[UMASK_VARIABLE] == "002"
    assert json.loads(variables[VARIABLE])["pods"]["env"] == {UMASK_VARIABLE: "002"}
    with pytest.raises(ValueError, match="three octal digits"):
        applied("Record", umask="0o22")
