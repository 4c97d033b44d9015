"""The cluster of a training as an indexed Job, which every Kubernetes has: no operator is needed.

Index 0 is the chief, then come the workers, then the parameter servers. What the operator does for a
TFJob is done by `indexed_task` in each pod: it makes TF_CONFIG of the index, and ends the tasks that
would go on when the chief is done.

All fields work from Kubernetes 1.28 on. `backoffLimitPerIndex` (1.29) and `successPolicy` (1.31) are left
out: an older server drops them without a word, and parameter servers would run to the deadline.
"""

import json
from collections.abc import Mapping
from typing import Any

from pipelines.kubeflow.indexed_task import CLUSTER_VARIABLE
from pipelines.kubeflow.training.job_kind import Body, JobKind, true_conditions
from pipelines.kubeflow.training.training_job import (
    CONTAINER,
    PORT,
    TrainingJob,
    owner,
    pod_template,
)

COMMAND = ("python", "-m", "pipelines.kubeflow.indexed_task")

_BUGS = tuple(range(1, 128))
"""Exit codes of programs that fail; from 128 on one was ended by a signal. A TFJob sees them so, too."""


class IndexedJobs(JobKind):
    """Jobs of `batch/v1`, each with a headless Service, which gives its pods names that stay."""

    name = "Job"
    group, version, plural = "batch", "v1", "jobs"
    pod_label = "batch.kubernetes.io/job-name"
    rights = ", and the same of services"

    def manifest(
        self, job: TrainingJob, name: str, namespace: str, task_file: str, workers: int, ps: int
    ) -> Body:
        """Returns the Job.

        Its pods have one description: parameter servers get the accelerators, too. A task that fails
        ends the job, one that was killed is started again; one that loses its node, or has to leave it,
        does not count among the `restarts`.
        """
        settings = job.settings
        tasks = 1 + workers + ps
        template = pod_template(
            job,
            [*COMMAND, task_file],
            has_accelerators=True,
            env={CLUSTER_VARIABLE: json.dumps(cluster_of(name, workers, ps))},
        )
        template["spec"].update(restartPolicy="Never", subdomain=name)
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.name,
            "metadata": {"name": name, "namespace": namespace, **owner(settings, namespace)},
            "spec": {
                "completionMode": "Indexed",
                "completions": tasks,
                "parallelism": tasks,
                "backoffLimit": settings["restarts"],
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "Ignore",
                            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                        },
                        {
                            "action": "FailJob",
                            "onExitCodes": {
                                "containerName": CONTAINER,
                                "operator": "In",
                                "values": list(_BUGS),
                            },
                        },
                    ]
                },
                "activeDeadlineSeconds": settings["deadline_secs"],
                "ttlSecondsAfterFinished": settings["keep_secs"],
                "template": template,
            },
        }

    def companions(self, job: Body) -> list[Body]:
        """Returns the Service of the pods' names. It belongs to the Job, and is deleted with it."""
        metadata = job["metadata"]
        name = metadata["name"]
        return [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "ownerReferences": [
                        {
                            "apiVersion": f"{self.group}/{self.version}",
                            "kind": self.name,
                            "name": name,
                            "uid": metadata["uid"],
                            "controller": True,
                        }
                    ],
                },
                "spec": {
                    "clusterIP": "None",
                    "selector": {self.pod_label: name},
                    # Tasks wait for each other: they must find one that is not ready yet.
                    "publishNotReadyAddresses": True,
                    "ports": [{"name": "training", "port": PORT, "targetPort": PORT}],
                },
            }
        ]

    def state(self, job: Mapping[str, Any]) -> str:
        """Returns whether it is complete, has failed, is suspended, or has pods."""
        true = true_conditions(job)
        if "Complete" in true:
            return "Succeeded"
        for state in ("Failed", "Suspended"):
            if state in true:
                return state
        return "Running" if (job.get("status") or {}).get("active") else "Pending"

    def ended_by_its_deadline(self, job: Mapping[str, Any]) -> bool:
        """Returns whether it took too long: its pods were deleted, but those that were killed before."""
        return true_conditions(job)["Failed"].get("reason") == "DeadlineExceeded"


def cluster_of(name: str, workers: int, ps: int) -> dict[str, list[str]]:
    """Returns the addresses of all tasks, in the order of the indices.

    Args:
      name: Of the job and of its Service.
      workers: Number of workers beside the chief.
      ps: Number of parameter servers.
    """
    addresses = [f"{name}-{index}.{name}:{PORT}" for index in range(1 + workers + ps)]
    return {
        "chief": addresses[:1],
        "worker": addresses[1 : 1 + workers],
        "ps": addresses[1 + workers :],
    }
