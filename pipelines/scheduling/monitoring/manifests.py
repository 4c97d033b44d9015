"""Manifests that keep a scheduler running: a systemd unit, or a Kubernetes CronJob."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.config.kubeflow import KubeflowConfig, TolerationConfig
from pipelines.config.pod_security import restricted
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.scheduling.schedule import Schedule

_STOP_SECS = 180
"""A longer time than a scheduler waits for its run to end."""


def systemd_unit(
    root: Root,
    working_dir: Path,
    schedules: Sequence[Schedule] = (),
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> str:
    """Returns a service that runs all schedules of a root.

    Args:
      root: Root of the runs.
      working_dir: Working directory of the scheduler.
      schedules: Schedules of the root; the unit needs their configurations, and the variables they name.
      options: Further options of `schedule run`.
      environment: Variables that it needs and that are not secret.
    """
    words = [sys.executable, "-m", "estimator_pipelines", "schedule", "run"]
    words += ["--root", str(root), *options]
    variables = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n" for name, value in (environment or {}).items()
    )
    files = (one.config_file for one in schedules)
    folders = {root.path, working_dir, *(file.parent for file in files if file is not None)}
    mounts = " ".join(_path_word(str(folder)) for folder in sorted(folders))
    secrets = {one.notify.webhook_env for one in schedules}
    names = ", ".join(sorted(name for name in secrets if name)) or "none"
    # KillMode: only the scheduler gets SIGTERM, and stops its run. OOMPolicy: a run that needs too much
    # memory fails, but the scheduler continues. Exit code 2: there is another scheduler.
    return f"""\
[Unit]
Description=Scheduled pipelines in {_escaped(str(root))}
After=network-online.target
Wants=network-online.target
# Starts when the volumes of these folders are mounted.
RequiresMountsFor={mounts}

[Service]
Type=exec
WorkingDirectory={_escaped(str(working_dir))}
# Secrets, as far as they are used: {names}.
# One NAME=value in a line. The file may be missing. Let only root read it.
EnvironmentFile=-/etc/pipelines/{_file_name(root.path.name)}.env
{variables}ExecStart={" ".join(map(_quoted, words))}
Restart=always
RestartSec=10
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec={_STOP_SECS}
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
"""


def cron_job(
    schedules: Sequence[Schedule],
    kubeflow: KubeflowConfig,
    root: str,
    image: str | None,
    cron: str,
) -> str:
    """Returns a CronJob that starts every few minutes and runs the due ticks.

    The root determines the due ticks, not Kubernetes: if a job is late, or is killed with its node, the next
    one does its work.

    Args:
      schedules: Schedules of the root.
      kubeflow: Settings with the image, the volumes, the secrets, the environment and the nodes.
      root: Path of the root in the pod.
      image: Image that replaces the configured one.
      cron: Cron expression of the job.

    Raises:
      BadInputError: There is no image.
    """
    import yaml

    image = image or kubeflow.image
    if not image:
        raise BadInputError("The CronJob needs an image: give --image, or set kubeflow.image.")
    names = (
        "-".join(schedule.name for schedule in schedules)
        .lower()
        .replace("_", "-")
        .replace(".", "-")
    )
    name = f"pipelines-{names}"[:52].rstrip("-")  # the limit for the name of a CronJob
    volumes, mounts = _volumes(kubeflow)
    container: dict[str, Any] = {
        "name": "schedules",
        "image": image,
        "command": [
            "python",
            "-m",
            "estimator_pipelines",
            "schedule",
            "run",
            "--once",
            "--root",
            root,
        ],
        "securityContext": restricted(),
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _STOP_SECS,
        "securityContext": {"fsGroup": 1000},
        "containers": [container],
    }
    environment: list[dict[str, Any]] = [
        {"name": key, "value": value} for key, value in kubeflow.env.items()
    ]
    for secret in kubeflow.secrets:
        for key, variable in secret.env.items():
            reference = {"secretKeyRef": {"name": secret.name, "key": key}}
            environment.append({"name": variable, "valueFrom": reference})
    if environment:
        container["env"] = environment
    if volumes:
        container["volumeMounts"] = mounts
        pod["volumes"] = volumes
    if kubeflow.service_account:
        pod["serviceAccountName"] = kubeflow.service_account
    if kubeflow.node_selector:
        pod["nodeSelector"] = dict(kubeflow.node_selector)
    if kubeflow.tolerations:
        pod["tolerations"] = [_toleration(one) for one in kubeflow.tolerations]
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": cron,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 600,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 5,
            # A killed pod is recreated and resumes the run; a pod whose run failed finds nothing due.
            "jobTemplate": {"spec": {"backoffLimit": 3, "template": {"spec": pod}}},
        },
    }
    return str(yaml.safe_dump(job, sort_keys=False))


def _volumes(kubeflow: KubeflowConfig) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for number, volume in enumerate(kubeflow.volumes, 1):
        name = f"volume-{number}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": volume.claim}})
        mount = {"name": name, "mountPath": volume.path}
        mounts.append({**mount, "subPath": volume.sub_path} if volume.sub_path else mount)
    for number, secret in enumerate(kubeflow.secrets, 1):
        if secret.path is not None:
            name = f"secret-{number}"
            volumes.append({"name": name, "secret": {"secretName": secret.name}})
            mounts.append({"name": name, "mountPath": secret.path, "readOnly": True})
    return volumes, mounts


def _toleration(one: TolerationConfig) -> dict[str, Any]:
    fields = one.model_dump(mode="json", exclude_none=True)
    if "seconds" in fields:
        fields["tolerationSeconds"] = fields.pop("seconds")
    return fields


def _escaped(text: str) -> str:
    if "\n" in text:
        raise BadInputError(f"systemd takes no line breaks in paths. Received: {text!r}")
    return text.replace("%", "%%")


def _path_word(path: str) -> str:
    """Returns a path quoted for a list of paths in systemd, which expands no variables there."""
    return '"' + _escaped(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name) or "pipelines"


def _quoted(text: str) -> str:
    """Returns a word quoted for a command line in systemd, which has its own rules."""
    escaped = _escaped(text).replace("\\", "\\\\").replace("$", "$$")
    if escaped and not set(escaped) & set(" \t\"';"):
        return escaped
    return '"' + escaped.replace('"', '\\"') + '"'
