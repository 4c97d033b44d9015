"""Pods of a training Job: their logs, the pod that caused a failure, and errors of Kubernetes' API."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client
from urllib3.exceptions import HTTPError

from pipelines.kubeflow.training.indexed_job import POD_LABEL, ended_by_its_deadline, true_conditions
from pipelines.kubeflow.training.training_job import CONTAINER

_LOGGER = logging.getLogger(__name__)

REQUEST_SECS = 60

_TOO_MANY_REQUESTS = 429
_LOG_LINES = 200
_FIRST_SIGNAL = 128  # exit codes of programs that a signal ended begin here


@dataclass(frozen=True)
class JobPods:
    client: Any  # `ApiClient` of the `kubernetes` package
    namespace: str

    def _pods(self, name: str) -> list[Any]:
        pods = client.CoreV1Api(self.client).list_namespaced_pod(
            self.namespace, label_selector=f"{POD_LABEL}={name}", _request_timeout=REQUEST_SECS
        )
        return list(pods.items)

    def _log(self, pod: str) -> str:
        return str(
            client.CoreV1Api(self.client).read_namespaced_pod_log(
                pod, self.namespace, container=CONTAINER, tail_lines=_LOG_LINES, _request_timeout=REQUEST_SECS
            )
        )

    def keep_logs(self, name: str, log_dir: Path | None) -> None:
        """Writes the logs of the pods that still exist. A failure to do so is only a warning."""
        if log_dir is None:
            return
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
            for pod in self._pods(name):
                (log_dir / f"{pod.metadata.name}.log").write_text(
                    self._log(pod.metadata.name), encoding="utf-8"
                )
        except (client.ApiException, HTTPError, OSError) as error:
            _LOGGER.warning("The logs of the Job %s are lost: %s", name, api_message(error))

    def why(self, name: str, job: Mapping[str, Any]) -> str:
        """Returns the reason of a failure: the last line of the task that failed, or Kubernetes' message."""
        said = true_conditions(job)["Failed"].get("message", "")
        why = f"the Job {name} failed: {said}"
        if ended_by_its_deadline(job):
            return why
        try:
            failed = [pod for pod in self._pods(name) if pod.status.phase == "Failed"]
            for pod in sorted(failed, key=_was_killed):  # a killed task is seldom the cause
                lines = [line for line in self._log(pod.metadata.name).splitlines() if line.strip()]
                if lines and _was_killed(pod):
                    ended = _ended(pod)
                    how = f"exit code {ended.exit_code} ({ended.reason or 'no reason given'})"
                    return f"{why} {pod.metadata.name}, {how}: {lines[-1]}"
                if lines:
                    return f"{pod.metadata.name}: {lines[-1]}"
        except (client.ApiException, HTTPError) as error:
            _LOGGER.warning("The pods of the Job %s can't be read: %s", name, api_message(error))
        return why


def _ended(pod: Any) -> Any:
    """Returns the terminated state of the task's container; None if Kubernetes does not have it."""
    for status in pod.status.container_statuses or ():
        if status.name == CONTAINER and status.state is not None:
            return status.state.terminated
    return None


def _was_killed(pod: Any) -> bool:
    ended = _ended(pod)
    return ended is not None and ended.exit_code >= _FIRST_SIGNAL


def is_transient(error: Any) -> bool:
    """Returns True if a retry may succeed: no connection, or an error of Kubernetes itself.

    A certificate that is refused once is refused again.
    """
    status = getattr(error, "status", 0) or 0  # 0: there was no answer
    if status == 0 and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return False
    return status == 0 or status >= 500 or status == _TOO_MANY_REQUESTS


def api_message(error: Any) -> str:
    """Returns Kubernetes' message, or the library's about the connection."""
    try:
        return str(json.loads(error.body)["message"])
    except (AttributeError, TypeError, ValueError, LookupError):
        return str(getattr(error, "reason", None) or error)
