import json

import pytest
from kubernetes.client import ApiException

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.kubeflow.indexed_task import CLUSTER_VARIABLE
from pipelines.kubeflow.training.cluster_jobs import ClusterJobs, TrainingJobError
from pipelines.kubeflow.training.indexed_job import manifest, service, state
from pipelines.kubeflow.training.training_job import training_job
from tests.pipelines.kubeflow.training.test_cluster_jobs import SERVE_FOR_EVER, job


def job_of(**settings):
    given = training_job(KubeflowConfig(image="image:1", training_job=settings))
    return manifest(given, "trainer-1", "ml", "/mnt/task.json", workers=3, ps=2)


def test_each_task_has_an_index():
    spec = job_of()["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 6, 6)
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-P", "-m", "pipelines.kubeflow.indexed_task", "/mnt/task.json"]
    addresses = {
        "chief": ["trainer-1-0.trainer-1:2222"],
        "worker": [f"trainer-1-{number}.trainer-1:2222" for number in (1, 2, 3)],
        "ps": ["trainer-1-4.trainer-1:2222", "trainer-1-5.trainer-1:2222"],
    }
    assert container["env"] == [{"name": CLUSTER_VARIABLE, "value": json.dumps(addresses)}]


def test_the_job_is_one_that_ends(monkeypatch):
    monkeypatch.delenv("KFP_POD_NAME", raising=False)
    body = job_of(restarts=5, deadline_secs=500, keep_secs=60)
    assert body["metadata"] == {"name": "trainer-1", "namespace": "ml"}
    spec = body["spec"]
    assert spec["backoffLimit"] == 5
    assert spec["activeDeadlineSeconds"] == 500
    assert spec["ttlSecondsAfterFinished"] == 60
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # podFailurePolicy demands it
    lost, failed = spec["podFailurePolicy"]["rules"]
    assert lost["action"] == "Ignore"
    assert failed["action"] == "FailJob"
    codes = failed["onExitCodes"]["values"]
    assert (min(codes), max(codes), len(codes)) == (1, 127, 127)  # of signals: 128 and more


def test_the_service_gives_the_pods_their_names_and_goes_with_the_job():
    body = job_of()
    body["metadata"]["uid"] = "123"
    made = service(body)
    assert made["metadata"]["name"] == body["spec"]["template"]["spec"]["subdomain"]
    assert made["spec"]["clusterIP"] == "None"
    assert made["spec"]["selector"] == {"batch.kubernetes.io/job-name": "trainer-1"}
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("batch/v1", "Job", "123")
    assert "blockOwnerDeletion" not in owner  # OpenShift grants it to few


@pytest.mark.parametrize(
    ("active", "conditions", "expected"),
    [
        ({}, {}, "Pending"),
        ({"active": 2}, {}, "Running"),
        ({"active": 2}, {"FailureTarget": "True"}, "Running"),
        ({}, {"Suspended": "True"}, "Suspended"),
        ({"active": 1}, {"Suspended": "False"}, "Running"),
        ({}, {"Complete": "True"}, "Succeeded"),
        ({}, {"FailureTarget": "True", "Failed": "True"}, "Failed"),
    ],
)
def test_the_state_of_a_job_follows_from_its_conditions(active, conditions, expected):
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    assert state({"status": {**active, **({"conditions": listed} if listed else {})}}) == expected


@pytest.mark.more
def test_a_pod_whose_node_is_emptied_does_not_count(server, jobs, tmp_path):
    program = SERVE_FOR_EVER + (
        f"place = {str(tmp_path / 'evicted')!r}\n"
        "if kind == 'chief' and not os.path.exists(place):\n"
        "  open(place, 'w').close(); time.sleep(600)\n"
    )

    def evict_the_chief(pods):
        chiefs = [pod for pod in pods if pod.kind == "Chief"]
        if (tmp_path / "evicted").exists() and len(chiefs) == 1:
            chiefs[0].evict()
            return chiefs[0]
        return None

    server.kill_once = evict_the_chief
    jobs.run(job(server, jobs, program, restarts=0))
    assert server.kill_once is None
    assert len([pod for pod in server.pods["trainer-1"] if pod.kind == "Chief"]) == 2


@pytest.mark.more
def test_the_service_of_an_earlier_job_is_replaced(server, jobs):
    earlier = {"uid": "of the past", "apiVersion": "batch/v1", "kind": "Job", "name": "trainer-1"}
    metadata = {"name": "trainer-1", "ownerReferences": [earlier]}
    server.services["trainer-1"] = {"metadata": metadata, "spec": {"clusterIP": "None", "selector": {}}}
    jobs.run(job(server, jobs, SERVE_FOR_EVER))
    (owner,) = server.services["trainer-1"]["metadata"]["ownerReferences"]
    assert owner["uid"] == server.jobs["trainer-1"]["metadata"]["uid"]


@pytest.mark.more
def test_a_step_that_is_tried_again_makes_the_service_that_is_missing(server, jobs):
    body = job(server, jobs, SERVE_FOR_EVER + "time.sleep(0.3)")
    server.submit(body)  # and then the step was killed
    jobs.run(body)
    assert list(server.services) == ["trainer-1"]


def test_a_job_without_its_service_is_deleted(server, jobs):
    server.denies = ("services",)
    refused = r"refused the Service trainer-1: 403 .*jobs.batch and of services in the namespace ml"
    with pytest.raises(TrainingJobError, match=refused):
        jobs.run(job(server, jobs, "time.sleep(600)"))
    assert not server.jobs


def test_a_service_that_stays_is_an_error(server, jobs):
    class Stuck(ClusterJobs):
        def _call(self, doing, kind, *arguments):
            if kind != "Service":
                return super()._call(doing, kind, *arguments)
            if doing == "submitting":
                raise ApiException(status=409)
            return {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}

    stuck = Stuck(jobs.client, "ml", 0.05, patience_secs=0.2)
    with pytest.raises(TrainingJobError, match=r"kubectl -n ml delete service trainer-1"):
        stuck.run(job(server, jobs, "time.sleep(600)"))
