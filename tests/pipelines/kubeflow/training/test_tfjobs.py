import pytest

from pipelines.config.kubeflow import TrainingJobConfig
from pipelines.kubeflow.training.tfjobs import TfJobs
from pipelines.kubeflow.training.training_job import TrainingJob


def manifest(**settings):
    given = TrainingJob("image:1", TrainingJobConfig(**settings).model_dump(mode="json"))
    return TfJobs().manifest(given, "trainer-1", "ml", "/mnt/task.json", workers=3, ps=2)


def test_the_job_is_one_that_ends(monkeypatch):
    monkeypatch.delenv("KFP_POD_NAME", raising=False)
    body = manifest(restarts=5, deadline_secs=500, keep_secs=60)
    assert body["apiVersion"] == "kubeflow.org/v1"
    assert body["metadata"] == {"name": "trainer-1", "namespace": "ml"}
    assert body["spec"]["runPolicy"] == {
        "cleanPodPolicy": "Running",  # or parameter servers would run for ever
        "backoffLimit": 5,
        "activeDeadlineSeconds": 500,
        "ttlSecondsAfterFinished": 60,
    }
    replicas = body["spec"]["tfReplicaSpecs"]
    assert {kind: one["replicas"] for kind, one in replicas.items()} == {
        "Chief": 1,
        "Worker": 3,
        "PS": 2,
    }
    assert {one["restartPolicy"] for one in replicas.values()} == {"ExitCode"}


def test_parameter_servers_have_no_accelerators():
    replicas = manifest(cpu="2", accelerator="nvidia.com/gpu", accelerators=2)["spec"][
        "tfReplicaSpecs"
    ]
    limits = {
        kind: one["template"]["spec"]["containers"][0]["resources"]["limits"]
        for kind, one in replicas.items()
    }
    both = {"cpu": "2", "nvidia.com/gpu": "2"}
    assert limits == {"Chief": both, "Worker": both, "PS": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ({}, "Pending"),
        ({"Created": "True"}, "Created"),
        ({"Created": "True", "Running": "True"}, "Running"),
        ({"Created": "True", "Running": "False", "Succeeded": "True"}, "Succeeded"),
        ({"Created": "True", "Restarting": "False", "Failed": "True"}, "Failed"),
    ],
)
def test_states(conditions, state):
    given = [{"type": kind, "status": status} for kind, status in conditions.items()]
    assert TfJobs().state({"status": {"conditions": given}}) == state
