"""The cluster of a training as a TFJob of the training operator."""

from collections.abc import Mapping
from typing import Any

from pipelines.kubeflow.training.job_kind import Body, JobKind, true_conditions
from pipelines.kubeflow.training.training_job import TrainingJob, owner, pod_template

COMMAND = ("python", "-m", "pipelines.kubeflow.training_task")

_STATES = ("Failed", "Succeeded", "Suspended", "Restarting", "Running", "Created")


class TfJobs(JobKind):
    """TFJobs. The operator sets TF_CONFIG and makes a Service for each pod."""

    name = "TFJob"
    group, version, plural = "kubeflow.org", "v1", "tfjobs"
    pod_label = "training.kubeflow.org/job-name"

    def manifest(
        self, job: TrainingJob, name: str, namespace: str, task_file: str, workers: int, ps: int
    ) -> Body:
        """Returns the TFJob.

        Parameter servers never end by themselves: `cleanPodPolicy` ends what runs when the chief is done.
        A task that was killed (exit codes from 128 on) is started again, one that fails ends the job.
        """
        settings = job.settings
        replicas = {"Chief": 1, "Worker": workers, "PS": ps}
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.name,
            "metadata": {"name": name, "namespace": namespace, **owner(settings, namespace)},
            "spec": {
                "runPolicy": {
                    "cleanPodPolicy": "Running",
                    "backoffLimit": settings["restarts"],
                    "activeDeadlineSeconds": settings["deadline_secs"],
                    "ttlSecondsAfterFinished": settings["keep_secs"],
                },
                "tfReplicaSpecs": {
                    kind: {
                        "replicas": number,
                        "restartPolicy": "ExitCode",
                        "template": pod_template(
                            job, [*COMMAND, task_file], has_accelerators=kind != "PS"
                        ),
                    }
                    for kind, number in replicas.items()
                },
            },
        }

    def state(self, job: Mapping[str, Any]) -> str:
        """Returns the last of its conditions."""
        true = true_conditions(job)
        return next((state for state in _STATES if state in true), "Pending")
