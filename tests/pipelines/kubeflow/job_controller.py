"""Kubernetes' Job controller for indexed Jobs, and its DNS, for `kubernetes_server`.

It follows Kubernetes 1.28 to 1.37: a pod for each index, with JOB_COMPLETION_INDEX; one that fails is
replaced by a new one of the same index, and stays; the first rule of `podFailurePolicy` that fits says
whether the job fails, or whether the failure counts towards `backoffLimit`; the job is complete when all
indices have succeeded; pods that run when it fails are deleted; `activeDeadlineSeconds`.

A pod is found as `<job>-<index>.<subdomain>` once a headless Service of that name selects it. Here the
names in the environment become addresses of the loopback, and no pod starts before.
"""

import json
import os
import sys
import uuid

from tests.pipelines.kubeflow.kubernetes_pods import Pod, free_port

KINDS = {"chief": "Chief", "worker": "Worker", "ps": "PS"}
PORT = 2222


class JobController:
    """The controller of the Jobs of a server."""

    pod_label = "batch.kubernetes.io/job-name"

    def __init__(self, server):
        self._server, self._failures, self._indices, self._ports = server, {}, {}, {}

    def fault(self, body):
        """Returns why a Job is refused, or None."""
        spec = body["spec"]
        pod = spec["template"]["spec"]
        if pod.get("restartPolicy") != "Never":
            return "spec.template.spec.restartPolicy: podFailurePolicy needs Never"
        if spec["completionMode"] != "Indexed" or spec["completions"] != spec["parallelism"]:
            return "spec: tasks that wait for each other must all run"
        for rule in spec["podFailurePolicy"]["rules"]:
            if 0 in rule.get("onExitCodes", {}).get("values", ()):
                return "spec.podFailurePolicy.rules.onExitCodes.values: must not be 0"
        return None

    def accept(self, name):
        self._failures[name] = 0

    def can_start(self, name):
        service = self._server.services.get(self._pod_spec(name).get("subdomain"))
        labels = {self.pod_label: name}
        return (
            service is not None
            and service["spec"]["clusterIP"] == "None"
            and service["spec"]["selector"].items() <= labels.items()
        )

    def start(self, name):
        tasks = self._server.jobs[name]["spec"]["completions"]
        self._ports[name] = [free_port() for _ in range(tasks)]
        self._indices[name] = {}
        return [self._pod(name, index) for index in range(tasks)]

    def _pod_spec(self, name):
        return self._server.jobs[name]["spec"]["template"]["spec"]

    def _pod(self, name, index):
        spec = self._pod_spec(name)
        (container,) = spec["containers"]
        given = {item["name"]: item["value"] for item in container["env"]}
        for number, port in enumerate(self._ports[name]):
            host = f"{name}-{number}.{spec['subdomain']}:{PORT}"
            given = {key: value.replace(f'"{host}"', f'"127.0.0.1:{port}"') for key, value in given.items()}
        pod = f"{name}-{index}-{uuid.uuid4().hex[:5]}"
        started = Pod(
            pod,
            _kind(given, index),
            [sys.executable, *container["command"][1:]],
            {**os.environ, **given, "JOB_COMPLETION_INDEX": str(index)},
            self._server.folder / f"{pod}.log",
        )
        self._indices[name][pod] = index
        return started

    def reconcile(self, name):
        job = self._server.jobs[name]
        spec, pods = job["spec"], self._server.pods[name]
        if self._server.is_too_late(name, spec["activeDeadlineSeconds"]):
            self._fail(name, "DeadlineExceeded", "Job was active longer than specified deadline")
            return
        indices = self._indices[name]
        newest = {indices[pod.name]: pod for pod in pods}
        for index, pod in newest.items():
            if pod.phase != "Failed":
                continue
            number, action = _action(spec["podFailurePolicy"]["rules"], pod)
            if action == "FailJob":
                self._fail(
                    name,
                    "PodFailurePolicy",
                    f"Container tensorflow for pod {pod.name} failed with exit code {pod.code} matching "
                    f"FailJob rule at index {number}",
                )
                return
            self._failures[name] += action == "Count"
            if self._failures[name] > spec["backoffLimit"]:
                self._fail(name, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
                return
            pods.append(self._pod(name, index))
            return
        job["status"]["active"] = sum(pod.phase == "Running" for pod in newest.values())
        if all(pod.phase == "Succeeded" for pod in newest.values()):
            self._server.condition(name, "Complete", "", "CompletionsReached")

    def _fail(self, name, reason, message):
        self._server.condition(name, "FailureTarget", message, reason)
        for pod in list(self._server.pods[name]):
            if pod.phase == "Running":
                pod.kill()
                self._server.pods[name].remove(pod)
        self._server.condition(name, "Failed", message, reason)


def _action(rules, pod):
    """Returns the number of the first rule that fits a failed pod, and its action."""
    for number, rule in enumerate(rules):
        wanted = {one["type"] for one in rule.get("onPodConditions", ())}
        if "DisruptionTarget" in wanted and pod.is_evicted:
            return number, rule["action"]
        codes = rule.get("onExitCodes")
        if codes and (pod.code in codes["values"]) == (codes["operator"] == "In"):
            return number, rule["action"]
    return None, "Count"


def _kind(environment, index):
    """Returns the part of an index, for the tests: Kubernetes knows none."""
    for value in environment.values():
        if value.startswith('{"chief"'):
            kinds = [kind for kind, hosts in json.loads(value).items() for _ in hosts]
            return KINDS[kinds[index]]
    return None
