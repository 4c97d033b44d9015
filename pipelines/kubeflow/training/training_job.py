"""Cluster of a Trainer as a Kubernetes Job: its settings, its pods, and the folder that they share."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipelines.config.data import Section
from pipelines.config.kubeflow import KubeflowConfig, StepConfig, TrainingJobConfig
from pipelines.config.pod_spec import pod_spec
from pipelines.kubeflow.step_environment import UMASK_VARIABLE

if TYPE_CHECKING:
    from pipelines.runs.definitions.run_plan import RunPlan

VARIABLE = "ESTIMATOR_PIPELINES_TRAINING_JOB"
"""Environment variable of the Trainer's step with the settings of its job's pods, as JSON."""

EXECUTOR = "pipelines.kubeflow.training.training_executor.Executor"
CONTAINER = "tensorflow"

PORT = 2222

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class TrainingJob(Section):
    """A job to submit, which the Trainer's step gets as JSON."""

    settings: TrainingJobConfig  # Settings of `[kubeflow.training_job]`
    pods: KubeflowConfig  # Image, environment, secrets, volumes, nodes and service account of the tasks' pods

    @classmethod
    def from_environment(cls) -> "TrainingJob":
        try:
            return cls.model_validate_json(os.environ[VARIABLE])
        except (KeyError, ValidationError) as error:
            raise LookupError(
                f"The environment of this step has no {VARIABLE} that can be read: the pipeline was compiled "
                "without kubeflow.training_job, or by another version. Compile it again."
            ) from error


def training_executor(plan: "RunPlan") -> dict[str, Any] | None:
    """Returns the executor of a run whose cluster is a Job, or None.

    The place where the tasks run does not change the model, so the name of the step stays the same.
    """
    if not plan.config.trainer.workers or plan.config.kubeflow.training_job is None:
        return None
    return {"type": "PythonClassExecutableSpec", "spec": {"classPath": EXECUTOR}}


def training_job(settings: KubeflowConfig) -> TrainingJob | None:
    """Returns the job of a configuration; its pods have the settings of the Trainer's step."""
    job = settings.training_job
    if job is None:
        return None
    step = settings.components.get("Trainer", StepConfig())
    umask = {} if settings.umask is None else {UMASK_VARIABLE: settings.umask}
    pods = KubeflowConfig(
        image=settings.image,
        volumes=settings.volumes,
        env={**settings.env, **step.env, **umask},
        secrets=settings.secrets,
        node_selector={**settings.node_selector, **step.node_selector},
        tolerations=settings.tolerations,
        service_account=job.service_account,
    )
    return TrainingJob(settings=job, pods=pods)


def job_name(folder: str) -> str:
    """Returns the name of a training's job, which is the same when its step is tried again.

    It and `<name>-worker-10` are names of services: at most 63 characters, beginning with a letter.
    """
    return f"trainer-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def pod_template(job: TrainingJob, command: list[str], env: dict[str, str]) -> dict[str, Any]:
    resources = {"cpu": job.settings.cpu, "memory": job.settings.memory}
    if job.settings.accelerator:
        resources[job.settings.accelerator] = str(job.settings.accelerators)
    limits = {name: amount for name, amount in resources.items() if amount}
    container = {
        "name": CONTAINER,
        "command": command,
        "ports": [{"name": "training", "containerPort": PORT}],
        "resources": {"limits": limits, "requests": dict(limits)} if limits else {},
    }
    pods = job.pods.model_copy(update={"env": {**job.pods.env, **env}})
    return {
        "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": pod_spec(pods, container),
    }


def step_namespace() -> str | None:
    """Returns the namespace of this process's pod; None outside of a cluster."""
    if not _NAMESPACE_FILE.is_file():
        return None
    return _NAMESPACE_FILE.read_text(encoding="utf-8").strip() or None


def owner(settings: TrainingJobConfig, namespace: str) -> dict[str, Any]:
    """Returns the owner reference of the job: the Trainer's pod, if known; a job is deleted with its owner.

    An owner in another namespace or cluster does not exist for Kubernetes, which would delete the job.
    """
    name, uid = os.environ.get("KFP_POD_NAME"), os.environ.get("KFP_POD_UID")
    is_elsewhere = bool(settings.api_server) or namespace != step_namespace()
    if not name or not uid or is_elsewhere:
        return {}
    return {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": False}
        ]
    }
