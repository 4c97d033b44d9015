"""What the training operator does with TFJobs, for `kubernetes_server`.

It follows training-operator 1.9: TF_CONFIG goes into the container `tensorflow`; the chief's success is the
job's; a task that fails ends the job, unless its exit code is from 128 on and it is started again;
`cleanPodPolicy` says what happens to those that still run; `activeDeadlineSeconds`.
"""

import json
import os
import sys

from tests.pipelines.kubeflow.kubernetes_pods import Pod, free_port


class TfJobOperator:
    """The operator of the TFJobs of a server."""

    pod_label = "training.kubeflow.org/job-name"

    def __init__(self, server):
        self._server, self._restarts = server, {}

    def fault(self, body):
        """Returns why a TFJob is refused, or None."""
        for kind, replica in body["spec"]["tfReplicaSpecs"].items():
            containers = replica["template"]["spec"]["containers"]
            if not any(one["name"] == "tensorflow" and one["image"] for one in containers):
                return f"{kind}: no container with name tensorflow and an image"
        return None

    def accept(self, name):
        self._server.condition(name, "Created", "")

    def can_start(self, name):
        return True

    def start(self, name):
        replicas = self._server.jobs[name]["spec"]["tfReplicaSpecs"]
        cluster = {
            kind.lower(): [f"127.0.0.1:{free_port()}" for _ in range(replica["replicas"])]
            for kind, replica in replicas.items()
        }
        pods = []
        for kind, replica in replicas.items():
            (container,) = replica["template"]["spec"]["containers"]
            given = {item["name"]: item["value"] for item in container["env"]}
            for index in range(replica["replicas"]):
                task = {"type": kind.lower(), "index": index}
                config = json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})
                pod = f"{name}-{kind.lower()}-{index}"
                pods.append(
                    Pod(
                        pod,
                        kind,
                        [sys.executable, *container["command"][1:]],
                        {**os.environ, **given, "TF_CONFIG": config},
                        self._server.folder / f"{pod}.log",
                    )
                )
        self._server.condition(name, "Running", "")
        return pods

    def reconcile(self, name):
        policy = self._server.jobs[name]["spec"]["runPolicy"]
        pods = self._server.pods[name]
        if self._server.is_too_late(name, policy["activeDeadlineSeconds"]):
            self._finish(name, "Failed", "active longer than specified deadline")
            return
        for pod in pods:
            if pod.phase != "Failed":
                continue
            retried = self._restarts.setdefault(name, 0) < policy["backoffLimit"]
            if pod.code >= 128 and retried:
                self._restarts[name] += 1
                pod.start()
            else:
                self._finish(name, "Failed", f"{pod.name} has failed with {pod.code}")
                return
        if all(pod.phase == "Succeeded" for pod in pods if pod.kind == "Chief"):
            self._finish(name, "Succeeded", "")

    def _finish(self, name, kind, message):
        self._server.condition(name, kind, message)
        pods = self._server.pods
        if self._server.jobs[name]["spec"]["runPolicy"]["cleanPodPolicy"] == "Running":
            for pod in pods[name]:
                if pod.phase == "Running":
                    pod.kill()
                    pods[name] = [one for one in pods[name] if one is not pod]
