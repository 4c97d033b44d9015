"""Cluster of a training as an indexed Job of Kubernetes, with a Service for the names of its pods.

Index 0 is the chief, then come the workers, then the parameter servers; `indexed_task` runs in each pod.

All fields work from Kubernetes 1.28 on. `backoffLimitPerIndex` (1.29) and `successPolicy` (1.31) are left
out: an older server drops them silently, and parameter servers would run to the deadline.
"""

import json
from collections.abc import Mapping
from typing import Any

from pipelines.kubeflow.indexed_task import CLUSTER_VARIABLE
from pipelines.kubeflow.training.training_job import CONTAINER, PORT, TrainingJob, owner, pod_template

COMMAND = ("python", "-P", "-m", "pipelines.kubeflow.indexed_task")

Body = dict[str, Any]
"""An object of Kubernetes as JSON."""

POD_LABEL = "batch.kubernetes.io/job-name"

_BUGS = tuple(range(1, 128))
"""Exit codes of programs that fail; after a signal, the code is 128 or more."""


def manifest(job: TrainingJob, name: str, namespace: str, task_file: str, workers: int, ps: int) -> Body:
    """Returns the Job to submit.

    All pods have the same description, so parameter servers get the accelerators, too. A task that fails
    ends the job; one that was killed is started again. If a task loses its node or is evicted, that does
    not count among the `restarts`.
    """
    settings = job.settings
    tasks = 1 + workers + ps
    template = pod_template(
        job, [*COMMAND, task_file], {CLUSTER_VARIABLE: json.dumps(task_addresses(name, workers, ps))}
    )
    template["spec"].update(restartPolicy="Never", subdomain=name)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, **owner(settings, namespace)},
        "spec": {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": tasks,
            "backoffLimit": settings.restarts,
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": list(_BUGS)},
                    },
                ]
            },
            "activeDeadlineSeconds": settings.deadline_secs,
            "ttlSecondsAfterFinished": settings.keep_secs,
            "template": template,
        },
    }


def service(job: Body) -> Body:
    """Returns the headless Service that names the pods. It belongs to the Job, and is deleted with it."""
    metadata = job["metadata"]
    name = metadata["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": name,
                    "uid": metadata["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {POD_LABEL: name},
            # Tasks wait for each other: they must find one that is not ready yet.
            "publishNotReadyAddresses": True,
            "ports": [{"name": "training", "port": PORT, "targetPort": PORT}],
        },
    }


def state(job: Mapping[str, Any]) -> str:
    """Returns `Succeeded`, `Failed`, `Suspended`, `Running` or `Pending`."""
    true = true_conditions(job)
    if "Complete" in true:
        return "Succeeded"
    for state in ("Failed", "Suspended"):
        if state in true:
            return state
    return "Running" if (job.get("status") or {}).get("active") else "Pending"


def ended_by_its_deadline(job: Mapping[str, Any]) -> bool:
    """Returns True if a failed job took too long: Kubernetes deleted its pods, and no pod is to blame."""
    return true_conditions(job)["Failed"].get("reason") == "DeadlineExceeded"


def true_conditions(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the conditions of a job that hold, by type."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return {condition["type"]: condition for condition in conditions if condition["status"] == "True"}


def task_addresses(name: str, workers: int, ps: int) -> dict[str, list[str]]:
    """Returns the addresses of all tasks, in the order of the indices."""
    addresses = [f"{name}-{index}.{name}:{PORT}" for index in range(1 + workers + ps)]
    return {"chief": addresses[:1], "worker": addresses[1 : 1 + workers], "ps": addresses[1 + workers :]}
