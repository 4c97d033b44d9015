"""The Deployment of docs/serving.md: its probes, a push, and a new image without a request that fails."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

from tests.kubernetes.namespace import CLAIM, IMAGE, MOUNT

PROJECT = pathlib.Path(__file__).parents[2]
TOKEN = "s3cret-of-the-test"
CLIENT = pathlib.Path(__file__).with_name("serving_client.py")
CLIENTS = 4


@pytest.fixture(scope="module")
def service(demo, demo_run, cluster):
    """Applies the documented objects to the demo's root; returns the address of the Service."""
    text = (PROJECT / "docs/serving.md").read_text()
    (block,) = re.findall(r"```yaml\n(apiVersion: apps/v1\n.*?)```", text, re.DOTALL)
    for documented, ours in (
        ("registry.example.com/pipelines:1.0", IMAGE),
        ("claimName: pipelines", f"claimName: {CLAIM}"),
        ("/mnt/pipelines/taxi", f"{MOUNT}/root"),
        ('requests: {cpu: "1", memory: 2Gi}', 'requests: {cpu: "100m", memory: 1Gi}'),
    ):
        assert block.count(documented) == 1
        block = block.replace(documented, ours)
    deployment, service = yaml.safe_load_all(block)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taxi-token"}}
    demo.apply({**secret, "stringData": {"token": TOKEN}}, deployment, service)
    demo.kubectl("rollout", "status", "deployment/taxi", "--timeout=900s")
    yield demo.read("service", "taxi")["spec"]["clusterIP"]
    demo.kubectl("delete", "deployment/taxi", "service/taxi", "--cascade=foreground")


def ready_pods(demo):
    pods = demo.pods("app=taxi")
    return [
        pod["metadata"]["name"]
        for pod in pods
        if any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in pod["status"].get("conditions", ())
        )
    ]


@pytest.mark.timeout(3600)
def test_a_pod_is_ready_when_it_answers(demo, service, cluster):
    assert len(ready_pods(demo)) == 2
    client = [sys.executable, str(CLIENT), service, TOKEN, "1", "1"]
    ran = subprocess.run(cluster.inside(*client), capture_output=True, text=True, check=True)
    answer = json.loads(ran.stdout)
    assert answer["failures"] == []
    assert answer["answered"] > 0


@pytest.mark.timeout(3600)
def test_a_server_that_hangs_is_started_again(demo, service, cluster):
    name = ready_pods(demo)[0]
    (status,) = demo.read("pod", name)["status"]["containerStatuses"]
    task = status["containerID"].removeprefix("containerd://")
    cluster.run_inside("ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGSTOP", task)
    demo.wait_for(lambda: name not in ready_pods(demo), "it is still called ready", 120)

    def restarts():
        (container,) = demo.read("pod", name)["status"]["containerStatuses"]
        return container["restartCount"]

    demo.wait_for(restarts, "it was not started again", 400)
    demo.wait_for(lambda: name in ready_pods(demo), "it is not ready again", 600)


@pytest.mark.timeout(3600)
def test_no_request_fails_while_the_pods_are_replaced(demo, service, cluster):
    former = set(ready_pods(demo))
    client = [sys.executable, str(CLIENT), service, TOKEN, str(CLIENTS), "0"]
    asking = subprocess.Popen(
        cluster.inside(*client), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        demo.kubectl("rollout", "restart", "deployment/taxi")
        demo.kubectl("rollout", "status", "deployment/taxi", "--timeout=1200s")
        demo.wait_for(lambda: len(demo.pods("app=taxi")) == 2, "the previous pods still exist", 180)
    finally:
        output, _ = asking.communicate("stop\n", timeout=120)
    summary = json.loads(output)
    print({**summary, "failures": summary["failures"][:5]})
    assert not former & set(ready_pods(demo))
    assert summary["failures"] == []
    assert summary["answered"] > 100
