import contextlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pipelines.config.kubeflow import KubeflowConfig, TrainingJobConfig
from pipelines.config.pod_security import restricted
from pipelines.kubeflow.component_plan import ComponentPlan
from pipelines.kubeflow.training import training_job as module
from pipelines.kubeflow.training.indexed_job import manifest
from pipelines.kubeflow.training.training_job import (
    VARIABLE,
    TrainingJob,
    job_name,
    owner,
    pod_template,
    shared_folder,
    training_job,
    training_job_of,
)
from pipelines.plan.run_plan import RunRequest, plan_run
from pipelines.root import Root

SETTINGS = {
    "cpu": "2", "memory": "4Gi", "accelerators": 1, "accelerator": "nvidia.com/gpu",
    "deadline_secs": 500, "keep_secs": 60, "restarts": 5, "service_account": "runner",
}  # fmt: skip


def job(**changes):
    settings = TrainingJobConfig(**{**SETTINGS, **changes}).model_dump(mode="json")
    return TrainingJob(
        "image:1",
        settings,
        volumes=({"claim": "pipelines", "path": "/mnt", "sub_path": "a"},),
        env={"A": "1"},
        secrets=({"name": "login", "env": {"password": "WORD"}, "path": "/etc/login"},),
        node_selector={"pool": "ml"},
        tolerations=({"key": "gpu", "operator": "Exists", "value": None, "seconds": 30},),
    )


def test_the_pods_see_the_root_and_what_the_steps_see():
    template = pod_template(job(), ["run"], {"B": "2"})
    assert template["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    pod = template["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "tensorflow"
    assert container["image"] == "image:1"
    assert container["securityContext"] == restricted()
    assert container["volumeMounts"] == [
        {"name": "volume-0", "mountPath": "/mnt", "subPath": "a"},
        {"name": "secret-0", "mountPath": "/etc/login"},
    ]
    assert pod["volumes"] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "pipelines"}},
        {"name": "secret-0", "secret": {"secretName": "login"}},
    ]
    assert container["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
    ]
    assert container["resources"]["limits"] == {
        "cpu": "2",
        "memory": "4Gi",
        "nvidia.com/gpu": "1",
    }
    assert pod["nodeSelector"] == {"pool": "ml"}
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 30}]
    assert pod["serviceAccountName"] == "runner"


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """This process is the pod `taxi-abc` in the namespace `ml`."""
    file = tmp_path / "namespace"
    file.write_text("ml\n")
    monkeypatch.setattr(module, "_NAMESPACE_FILE", file)
    monkeypatch.setenv("KFP_POD_NAME", "taxi-abc")
    monkeypatch.setenv("KFP_POD_UID", "123")
    return file


def test_the_job_belongs_to_the_pod_of_the_step(pod):
    (found,) = owner(job().settings, "ml")["ownerReferences"]
    assert (found["kind"], found["name"], found["uid"]) == ("Pod", "taxi-abc", "123")


def test_a_job_names_its_owner(pod):
    body = manifest(job(), "a", "ml", "task.json", 1, 1)
    assert body["metadata"] == {"name": "a", "namespace": "ml", **owner(job().settings, "ml")}
    assert "ownerReferences" in body["metadata"]


def test_no_owner_is_in_another_namespace_or_cluster(pod):
    # Kubernetes deletes objects that name an owner that is not in their own namespace.
    assert owner(job().settings, "training") == {}
    assert owner(job(api_server="https://other.example.com").settings, "ml") == {}
    pod.unlink()
    assert owner(job().settings, "ml") == {}


def test_the_name_is_that_of_the_training_and_short_enough():
    assert job_name("/a") == job_name("/a")
    assert job_name("/a") != job_name("/b")
    assert len(f"{job_name('/a' * 100)}-worker-99") <= 63


def test_it_travels_in_the_environment_and_not_in_the_plan(monkeypatch):
    monkeypatch.setenv(VARIABLE, job(poll_secs=3).as_variable())
    again = TrainingJob.from_environment()
    given = json.loads(json.dumps(asdict(job(poll_secs=3))))
    assert json.loads(json.dumps(asdict(again))) == given
    # All of the plan is in the key of the cache.
    assert job(poll_secs=3).to_json() == job(poll_secs=7, keep_secs=1, memory="9Gi").to_json()
    assert "VALUE" not in replace(job(), env={"A": "VALUE"}).to_json()


def test_a_step_without_it(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(LookupError, match="Compile it again"):
        TrainingJob.from_environment()


def test_its_pods_have_what_the_trainers_step_has():
    settings = KubeflowConfig.model_validate(
        {
            "env": {"A": "1", "B": "2"},
            "node_selector": {"pool": "ml", "disk": "hdd"},
            "components": {"Trainer": {"env": {"A": "3"}, "node_selector": {"disk": "ssd"}}},
            "training_job": {"cpu": "2"},
        }
    )
    found = training_job(settings)
    assert found.env == {"A": "3", "B": "2"}
    assert found.node_selector == {"pool": "ml", "disk": "ssd"}


@pytest.mark.parametrize("asked_for", [True, False])
def test_a_run_has_one_if_it_has_workers_and_asks_for_it(data, tmp_path, display, asked_for):
    settings = [
        "trainer.workers=2",
        "trainer.ps=1",
        "trainer.model=linear",
        "kubeflow.image=image:7",
    ]
    if asked_for:
        settings.append('kubeflow.training_job={namespace = "ml"}')
    plan = plan_run(
        RunRequest(
            root=Root(tmp_path / "root"), data=str(data), label="y", settings=tuple(settings)
        ),
        display,
    )
    found = training_job_of(plan)
    assert (found is not None) == asked_for
    if found:
        assert found.image == "image:7"
        assert found.settings["namespace"] == "ml"


def test_a_step_that_is_tried_again_finds_what_it_has_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("KFP_RUN_ID", "run-1")
    plan = ComponentPlan("Trainer", {}, {"parameters": {}}, "fingerprint")
    given = {"outputs": {"artifacts": {"model": {"artifacts": [{"uri": "minio://b/1"}]}}}}
    again = {"outputs": {"artifacts": {"model": {"artifacts": [{"uri": "minio://b/2"}]}}}}
    killed = contextlib.ExitStack()
    folder = killed.enter_context(shared_folder(Root(tmp_path), plan, given))
    (folder / "checkpoint").touch()
    killed.pop_all()  # the process is gone, and has put nothing in order
    with shared_folder(Root(tmp_path), plan, again) as folder:
        assert (folder / "checkpoint").exists()
    assert not Path(folder).exists()
    monkeypatch.setenv("KFP_RUN_ID", "run-2")
    with shared_folder(Root(tmp_path), plan, given) as other:
        assert other != folder
