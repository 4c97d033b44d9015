"""Cluster of a Trainer as a Kubernetes Job: its settings, its pods, and the folder that they share."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.config.kubeflow import KubeflowConfig, StepConfig
from pipelines.config.pod_security import restricted
from pipelines.kubeflow.step_environment import UMASK_VARIABLE

if TYPE_CHECKING:
    from pipelines.runs.definitions.run_plan import RunPlan

VARIABLE = "ESTIMATOR_PIPELINES_TRAINING_JOB"
"""Environment variable of the Trainer's step with the settings of its job."""

EXECUTOR = "pipelines.kubeflow.training.training_executor.Executor"
CONTAINER = "tensorflow"
"""Name of the container of each task."""

PORT = 2222
"""Port of each task."""

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True)
class TrainingJob:
    """Settings of a job to submit.

    Attributes:
      image: Image of each task.
      settings: Settings of `[kubeflow.training_job]`.
      volumes: Fields of each volume's `VolumeConfig`.
      env: Environment variables of each task.
      secrets: Fields of each secret's `SecretConfig`.
      node_selector: Labels of the nodes.
      tolerations: Fields of each toleration's `TolerationConfig`.
    """

    image: str
    settings: dict[str, Any]
    volumes: tuple[dict[str, Any], ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[dict[str, Any], ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()

    def as_variable(self) -> str:
        """Returns all fields as JSON, for a variable of the Trainer's step."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_environment(cls) -> "TrainingJob":
        """Returns the job that was passed to the Trainer's step.

        Raises:
          LookupError: The variable is not set.
        """
        text = os.environ.get(VARIABLE)
        if text is None:
            raise LookupError(
                f"The environment of this step has no {VARIABLE}: the pipeline was compiled without "
                "kubeflow.training_job, or by an older version. Compile it again."
            )
        return cls(**json.loads(text))


def training_executor(plan: "RunPlan") -> dict[str, Any] | None:
    """Returns the executor of a run whose cluster is a Job; None without one.

    The place where the tasks run does not change the model, so the name of the step stays the same.
    """
    if not plan.config.trainer.workers or plan.config.kubeflow.training_job is None:
        return None
    return {"type": "PythonClassExecutableSpec", "spec": {"classPath": EXECUTOR}}


def training_job(settings: KubeflowConfig) -> TrainingJob | None:
    """Returns the job of a configuration; its pods have the settings of the Trainer's step."""
    if settings.training_job is None:
        return None
    step = settings.components.get("Trainer", StepConfig())
    umask = {} if settings.umask is None else {UMASK_VARIABLE: settings.umask}
    return TrainingJob(
        str(settings.image),
        settings.training_job.model_dump(mode="json"),
        tuple(volume.model_dump(mode="json") for volume in settings.volumes),
        {**settings.env, **step.env, **umask},
        tuple(secret.model_dump(mode="json") for secret in settings.secrets),
        {**settings.node_selector, **step.node_selector},
        tuple(toleration.model_dump(mode="json") for toleration in settings.tolerations),
    )


def job_name(folder: str) -> str:
    """Returns the name of a training's job, which is the same when its step is tried again.

    It and `<name>-worker-10` are names of services: at most 63 characters, beginning with a letter.
    """
    return f"trainer-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def pod_template(job: TrainingJob, command: list[str], env: dict[str, str]) -> dict[str, Any]:
    """Returns the pod template of a task.

    Args:
      job: Settings of the job.
      command: Command of the container.
      env: Environment variables beside the job's.
    """
    return {
        "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": _pod(job, command, {**job.env, **env}),
    }


def _pod(job: TrainingJob, command: list[str], variables: dict[str, str]) -> dict[str, Any]:
    settings = job.settings
    limits = {key: settings[key] for key in ("cpu", "memory") if settings[key]}
    if settings["accelerator"]:
        limits[settings["accelerator"]] = str(settings["accelerators"])
    volumes = [
        {"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": volume["claim"]}}
        for number, volume in enumerate(job.volumes)
    ]
    mounts = [
        {
            "name": f"volume-{number}",
            "mountPath": volume["path"],
            **({"subPath": volume["sub_path"]} if volume["sub_path"] else {}),
        }
        for number, volume in enumerate(job.volumes)
    ]
    env: list[dict[str, Any]] = [{"name": key, "value": value} for key, value in variables.items()]
    for number, secret in enumerate(job.secrets):
        for key, variable in secret["env"].items():
            source = {"secretKeyRef": {"name": secret["name"], "key": key}}
            env.append({"name": variable, "valueFrom": source})
        if secret["path"]:
            volumes.append({"name": f"secret-{number}", "secret": {"secretName": secret["name"]}})
            mounts.append({"name": f"secret-{number}", "mountPath": secret["path"]})
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": job.image,
        "command": command,
        "env": env,
        "ports": [{"name": "training", "containerPort": PORT}],
        "volumeMounts": mounts,
        "securityContext": restricted(),
    }
    if limits:
        container["resources"] = {"limits": limits, "requests": dict(limits)}
    pod: dict[str, Any] = {"containers": [container], "volumes": volumes}
    if job.node_selector:
        pod["nodeSelector"] = job.node_selector
    if job.tolerations:
        pod["tolerations"] = [_toleration(one) for one in job.tolerations]
    if settings["service_account"]:
        pod["serviceAccountName"] = settings["service_account"]
    return pod


def _toleration(fields: dict[str, Any]) -> dict[str, Any]:
    names = {"seconds": "tolerationSeconds"}
    return {names.get(key, key): value for key, value in fields.items() if value is not None}


def step_namespace() -> str | None:
    """Returns the namespace of this process's pod; None outside of a cluster."""
    if not _NAMESPACE_FILE.is_file():
        return None
    return _NAMESPACE_FILE.read_text(encoding="utf-8").strip() or None


def owner(settings: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Returns the owner reference of the job: the Trainer's pod, if known; a job is deleted with its owner.

    For Kubernetes, an owner in another namespace or cluster does not exist: it would delete the job at once.
    """
    name, uid = os.environ.get("KFP_POD_NAME"), os.environ.get("KFP_POD_UID")
    is_elsewhere = bool(settings["api_server"]) or namespace != step_namespace()
    if not name or not uid or is_elsewhere:
        return {}
    return {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": False}
        ]
    }
