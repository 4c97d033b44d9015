import pytest

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pod_spec import restricted
from pipelines.kubeflow.training import training_job as module
from pipelines.kubeflow.training.indexed_job import manifest
from pipelines.kubeflow.training.training_job import (
    EXECUTOR,
    VARIABLE,
    TrainingJob,
    job_name,
    owner,
    pod_template,
    training_executor,
    training_job,
)
from pipelines.root import Root
from pipelines.runs.plan.run_plan import RunRequest, plan_run

SETTINGS = {
    "cpu": "2", "memory": "4Gi", "accelerators": 1, "accelerator": "nvidia.com/gpu",
    "deadline_secs": 500, "keep_secs": 60, "restarts": 5, "service_account": "runner",
}  # fmt: skip


def job(**changes):
    pods = {
        "image": "image:1",
        "volumes": [{"claim": "pipelines", "path": "/mnt", "sub_path": "a"}],
        "env": {"A": "1"},
        "secrets": [{"name": "login", "env": {"password": "WORD"}, "path": "/etc/login"}],
        "node_selector": {"pool": "ml"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "seconds": 30}],
        "training_job": {**SETTINGS, **changes},
    }
    return training_job(KubeflowConfig.model_validate(pods))


def test_the_pods_see_the_root_and_what_the_steps_see():
    template = pod_template(job(), ["run"], {"B": "2"})
    assert template["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    pod = template["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "tensorflow"
    assert container["image"] == "image:1"
    assert container["securityContext"] == restricted()
    assert container["volumeMounts"] == [
        {"name": "volume-1", "mountPath": "/mnt", "subPath": "a"},
        {"name": "secret-1", "mountPath": "/etc/login", "readOnly": True},
    ]
    assert pod["volumes"] == [
        {"name": "volume-1", "persistentVolumeClaim": {"claimName": "pipelines"}},
        {"name": "secret-1", "secret": {"secretName": "login"}},
    ]
    assert container["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
    ]
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}
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
    body = manifest(job(), "a", "ml", "task.json", 1, 1)
    (found,) = body["metadata"]["ownerReferences"]
    assert (found["kind"], found["name"], found["uid"]) == ("Pod", "taxi-abc", "123")
    assert body["metadata"] == {"name": "a", "namespace": "ml", **owner(job().settings, "ml")}


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


def test_it_travels_in_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, job(poll_secs=3).model_dump_json(exclude_defaults=True))
    assert TrainingJob.from_environment() == job(poll_secs=3)


@pytest.mark.parametrize("text", [None, '{"image": "image:1", "settings": {"cpu": "2"}}'])
def test_a_step_without_it_or_with_that_of_an_older_version(monkeypatch, text):
    monkeypatch.delenv(VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
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
    assert found.pods.env == {"A": "3", "B": "2"}
    assert found.pods.node_selector == {"pool": "ml", "disk": "ssd"}


@pytest.mark.parametrize("asked_for", [True, False])
def test_a_run_has_one_if_it_has_workers_and_asks_for_it(data, tmp_path, display, asked_for):
    settings = ["trainer.workers=2", "trainer.ps=1", "trainer.model=linear", "kubeflow.image=image:7"]
    if asked_for:
        settings.append('kubeflow.training_job={namespace = "ml"}')
    plan = plan_run(
        RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y", settings=tuple(settings)), display
    )
    executor = training_executor(plan)
    assert (executor is not None) == asked_for
    if executor:
        assert executor["spec"] == {"classPath": EXECUTOR}
        found = training_job(plan.config.kubeflow)
        assert (found.pods.image, found.settings.namespace) == ("image:7", "ml")
