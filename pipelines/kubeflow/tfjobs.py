"""Speaks to Kubernetes of TFJobs: submits one, waits for it, and says why it failed."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.kubeflow.training_job import CONTAINER, GROUP, PLURAL, VERSION

_LOGGER = logging.getLogger(__name__)

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_STATES = ("Failed", "Succeeded", "Suspended", "Restarting", "Running", "Created")
_MAX_ERRORS = 5
_LOG_LINES = 200
_DENIED = (401, 403)


class TrainingJobError(RuntimeError):
    """A TFJob could not be made, or has failed."""


@dataclass(frozen=True)
class TfJobs:
    """The TFJobs of a namespace.

    Attributes:
      client: Of the `kubernetes` package.
      namespace: Where they are.
      poll_secs: How often one is asked for.
      sleep: Waits between two questions.
    """

    client: Any
    namespace: str
    poll_secs: float
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "TfJobs":
        """Returns those of `[kubeflow.training_job]`.

        Raises:
          TrainingJobError: This process is in no cluster, and the settings name none.
        """
        from kubernetes import client, config

        if settings["api_server"]:
            api = client.ApiClient(client.Configuration(host=settings["api_server"]))
        else:
            try:
                config.load_incluster_config()
            except config.ConfigException as error:
                raise TrainingJobError(
                    f"kubeflow.training_job: this process is in no cluster of Kubernetes ({error}). Give "
                    "kubeflow.training_job.api_server, or leave kubeflow.training_job out: the tasks "
                    "are processes of the Trainer's pod then."
                ) from error
            api = client.ApiClient()
        namespace = settings["namespace"]
        if not namespace and _NAMESPACE_FILE.is_file():
            namespace = _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
        return cls(api, namespace or "kubeflow", settings["poll_secs"])

    def run(self, body: dict[str, Any], log_dir: Path | None = None) -> None:
        """Submits a job and waits until it has succeeded. One of this name that is there is waited for.

        Args:
          body: The TFJob.
          log_dir: Takes the log of each of its pods. Default: none is kept.

        Raises:
          TrainingJobError: It failed, was deleted, or Kubernetes refused it.
        """
        name = body["metadata"]["name"]
        self._create(name, body)
        try:
            job = self._wait(name)
        except BaseException:  # a signal, too: the pods must not go on for nothing
            self._keep_logs(name, log_dir)
            self._delete(name)
            raise
        self._keep_logs(name, log_dir)
        if _state(job) == "Failed":
            raise TrainingJobError(self._why(name, job))

    def _create(self, name: str, body: dict[str, Any]) -> None:
        from kubernetes import client

        try:
            client.CustomObjectsApi(self.client).create_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, body
            )
        except client.ApiException as error:
            if error.status == 409:
                _LOGGER.info("The TFJob %s is there already: waiting for it", name)
                return
            advice = (
                f"The service account of the Trainer's step needs the verbs create, get and delete of "
                f"{PLURAL}.{GROUP} in the namespace {self.namespace}."
                if error.status in _DENIED
                else "Is the training operator installed? Without it, leave kubeflow.training_job out."
                if error.status == 404
                else ""
            )
            raise TrainingJobError(
                f"Kubernetes has refused the TFJob {name}: {error.status} {_message(error)} {advice}".rstrip()
            ) from error

    def _wait(self, name: str) -> dict[str, Any]:
        from kubernetes import client

        last, errors = "", 0
        while True:
            try:
                job = client.CustomObjectsApi(self.client).get_namespaced_custom_object(
                    GROUP, VERSION, self.namespace, PLURAL, name
                )
                errors = 0
            except client.ApiException as error:
                errors += 1
                if error.status == 404:
                    raise TrainingJobError(f"The TFJob {name} was deleted.") from error
                if error.status in _DENIED or errors > _MAX_ERRORS:
                    raise TrainingJobError(
                        f"The TFJob {name} can't be read: {error.status} {_message(error)}"
                    ) from error
                self.sleep(self.poll_secs)
                continue
            state = _state(job)
            if state != last:
                _LOGGER.info("TFJob %s: %s", name, state)
                last = state
            if state in ("Succeeded", "Failed"):
                found: dict[str, Any] = job
                return found
            self.sleep(self.poll_secs)

    def _delete(self, name: str) -> None:
        from kubernetes import client

        try:
            client.CustomObjectsApi(self.client).delete_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, name
            )
        except client.ApiException as error:
            if error.status != 404:
                _LOGGER.warning("The TFJob %s could not be deleted: %s", name, _message(error))

    def _pods(self, name: str) -> list[Any]:
        from kubernetes import client

        listed = client.CoreV1Api(self.client).list_namespaced_pod(
            self.namespace, label_selector=f"training.kubeflow.org/job-name={name}"
        )
        return list(listed.items)

    def _log(self, pod: str) -> str:
        from kubernetes import client

        return str(
            client.CoreV1Api(self.client).read_namespaced_pod_log(
                pod, self.namespace, container=CONTAINER, tail_lines=_LOG_LINES
            )
        )

    def _keep_logs(self, name: str, log_dir: Path | None) -> None:
        """Keeps what the pods have printed that are still there; that it can't hides no other error."""
        from kubernetes import client

        if log_dir is None:
            return
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            for pod in self._pods(name):
                (log_dir / f"{pod.metadata.name}.log").write_text(
                    self._log(pod.metadata.name), encoding="utf-8"
                )
        except client.ApiException as error:
            _LOGGER.warning("The logs of the TFJob %s are lost: %s", name, _message(error))

    def _why(self, name: str, job: Mapping[str, Any]) -> str:
        from kubernetes import client

        conditions = job["status"]["conditions"]
        message = [one.get("message", "") for one in conditions if one["type"] == "Failed"][-1]
        try:
            for pod in self._pods(name):
                if pod.status.phase == "Failed":
                    lines = [
                        line for line in self._log(pod.metadata.name).splitlines() if line.strip()
                    ]
                    if lines:
                        return f"{pod.metadata.name}: {lines[-1]}"
        except client.ApiException as error:
            _LOGGER.warning("The pods of the TFJob %s can't be read: %s", name, _message(error))
        return f"the TFJob {name} failed: {message}"


def _state(job: Mapping[str, Any]) -> str:
    conditions = (job.get("status") or {}).get("conditions") or []
    true = {one["type"] for one in conditions if one["status"] == "True"}
    return next((state for state in _STATES if state in true), "Pending")


def _message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, LookupError):
        return str(error.reason)
