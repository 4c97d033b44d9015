"""The indexed Job of a training, checked by the code of Kubernetes' API server; and its refusals."""

import json
import pathlib
import subprocess

import pytest

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.kubeflow.training.indexed_job import manifest, service
from pipelines.kubeflow.training.training_job import job_name, training_job

SUBMIT = pathlib.Path(__file__).parents[2] / ".kubeflow" / "bin" / "submit"
SETTINGS = {
    "image": "registry.example.com/pipelines:1.0",
    "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines", "sub_path": "taxi"}],
    "env": {"A": "1"},
    "secrets": [{"name": "login", "env": {"password": "WORD"}, "path": "/etc/login"}],
    "node_selector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "seconds": 30}],
    "training_job": {
        "cpu": "500m",
        "memory": "8Gi",
        "accelerators": 2,
        "accelerator": "nvidia.com/gpu",
        "service_account": "trainer",
        "restarts": 0,
    },
}

pytestmark = pytest.mark.skipif(
    not SUBMIT.exists(), reason="Kubernetes' code is not built; `make test-kubeflow` builds it"
)


def objects(changes=(), workers=3, ps=2):
    """Returns the Job and its Service of settings, as they are submitted."""
    settings = {**SETTINGS, **dict(changes)}
    job = training_job(KubeflowConfig.model_validate(settings))
    name = job_name("/mnt/pipelines/taxi/training/1")
    body = manifest(job, name, "ml", "/mnt/pipelines/task.json", workers, ps)
    accepted = {**body, "metadata": {**body["metadata"], "uid": "1"}}
    return "\n".join(map(json.dumps, [body, service(accepted)]))


def submit(text):
    """Returns the exit code, and the output."""
    done = subprocess.run([SUBMIT], input=text, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("changes", [{}, {"training_job": {}, "volumes": [], "secrets": []}])
def test_the_job_and_its_service_are_accepted(changes):
    assert submit(objects(changes)) == (0, "accepted\n")


def test_names_of_pods_are_short_enough_for_many_tasks():
    assert submit(objects(workers=900, ps=99)) == (0, "accepted\n")


@pytest.mark.parametrize(
    ("original", "instead", "said"),
    [
        ('"restartPolicy": "Never"', '"restartPolicy": "OnFailure"', 'only "Never" is supported'),
        ('"values": [1,', '"values": [0, 1,', "must not be 0 for the In operator"),
        ('"completionMode"', '"completionMod"', 'unknown field "spec.completionMod"'),
        ('"subdomain": "trainer', '"subdomain": "Trainer', "spec.template.spec.subdomain: Invalid"),
        ('"containerName": "tensorflow"', '"containerName": "tf"', "onExitCodes.containerName"),
        ('"clusterIP": "None"', '"clusterIP": "none"', "must be a valid IP address"),
        ('"mountPath": "/etc/login"', '"mountPath": "/mnt/pipelines"', "must be unique"),
    ],
)
def test_what_kubernetes_would_refuse_is_found(original, instead, said):
    text = objects()
    spoiled = text.replace(original, instead)
    assert spoiled != text
    code, output = submit(spoiled)
    assert code == 1
    assert said in output
