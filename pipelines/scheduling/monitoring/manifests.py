"""Manifests that keep a scheduler running: a systemd service, or a Kubernetes CronJob."""

import functools
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pod_spec import pod_spec

_RUN = ("-m", "estimator_pipelines", "schedule", "run", "--root")


def systemd_service(root: Path, folders: Iterable[Path], environment: str, *options: str) -> str:
    """Returns a service that runs the schedules of a root after the volumes of the folders are mounted."""
    quoted = functools.partial(json.dumps, ensure_ascii=False)  # systemd knows the escapes of JSON
    command = " ".join(map(quoted, (sys.executable, *_RUN, str(root), *options))).replace("$", "$$")
    name, mounts = re.sub(r"[^\w.-]", "_", root.name), sorted({root, Path.cwd(), *folders})
    # KillMode: the scheduler gets SIGTERM, and stops its run itself. OOMPolicy: a run that needs too much
    # memory fails, but the scheduler continues. Exit code 2: another scheduler works in the root.
    return f"""\
[Unit]
Description=Scheduled pipelines in {quoted(str(root))}
RequiresMountsFor={" ".join(map(quoted, map(str, mounts)))}

[Service]
WorkingDirectory={Path.cwd()}
Environment={quoted(environment)}
EnvironmentFile=-/etc/pipelines/{name}.env
ExecStart={command}
Restart=always
RestartSec=10
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec=180
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
""".replace("%", "%%")


def cron_job(names: Iterable[str], kubeflow: KubeflowConfig, root: Path, cron: str) -> str:
    """Returns a CronJob that runs what is due according to the root, so a lost job is made up for."""
    container = {"name": "schedules", "command": ["python", *_RUN, str(root), "--once"]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 180}
    pod |= {"securityContext": {"fsGroup": 1000}, **pod_spec(kubeflow, container)}
    # A pod that was killed is recreated and resumes the run; after a failed run, it finds nothing due.
    jobs = {"spec": {"backoffLimit": 3, "template": {"spec": pod}}}
    spec: dict[str, Any] = {"schedule": cron, "concurrencyPolicy": "Forbid"}
    spec |= {"startingDeadlineSeconds": 600, "jobTemplate": jobs}
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(("pipelines", *names)).lower())[:52].rstrip("-")
    job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}
    return str(yaml.safe_dump(job, sort_keys=False))
