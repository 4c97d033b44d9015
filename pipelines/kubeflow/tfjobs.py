"""Speaks to Kubernetes of TFJobs: submits one, waits for it, and says why it failed."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pipelines.kubeflow.training_job import CONTAINER, GROUP, PLURAL, VERSION, step_namespace

_LOGGER = logging.getLogger(__name__)

_STATES = ("Failed", "Succeeded", "Suspended", "Restarting", "Running", "Created")
_LOG_LINES = 200
_DENIED = (401, 403)
_TOO_MANY_REQUESTS = 429
_REQUEST_SECS = 60
_PATIENCE_SECS = 600.0

_Answer = TypeVar("_Answer")


class TrainingJobError(RuntimeError):
    """A TFJob could not be made, or has failed."""


@dataclass(frozen=True)
class TfJobs:
    """The TFJobs of a namespace.

    Attributes:
      client: Of the `kubernetes` package.
      namespace: Where they are.
      poll_secs: How often one is asked for.
      patience_secs: How long Kubernetes may be out of reach, or a job may take to be deleted.
      sleep: Waits between two questions.
      clock: Counts seconds.
    """

    client: Any
    namespace: str
    poll_secs: float
    patience_secs: float = _PATIENCE_SECS
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

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
        namespace = settings["namespace"] or step_namespace() or "kubeflow"
        return cls(api, namespace, settings["poll_secs"])

    def run(self, body: dict[str, Any], log_dir: Path | None = None) -> None:
        """Submits a job and waits until it has succeeded.

        A job of this name that has not failed is waited for; one that has is deleted and made anew.
        The job is deleted when this process is stopped. It goes on when Kubernetes is out of reach.

        Args:
          body: The TFJob.
          log_dir: Takes the log of each of its pods. Default: none is kept.

        Raises:
          TrainingJobError: It failed, was deleted, or Kubernetes refused it or was out of reach.
        """
        name = body["metadata"]["name"]
        try:
            self._create(name, body)
            job = self._wait(name)
        except Exception:
            self._keep_logs(name, log_dir)
            raise
        except BaseException:  # the step is stopped: the pods must not go on for nothing
            self._delete_and_go_on(name)  # at once: there are only seconds left
            self._keep_logs(name, log_dir)  # a pod that ends still has its log
            raise
        self._keep_logs(name, log_dir)
        if _state(job) == "Failed":
            raise TrainingJobError(self._why(name, job))

    def _create(self, name: str, body: dict[str, Any]) -> None:
        from kubernetes import client

        def create() -> None:
            client.CustomObjectsApi(self.client).create_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, body, _request_timeout=_REQUEST_SECS
            )

        deadline = self.clock() + self.patience_secs
        while True:
            try:
                self._persist("submitting", name, create)
            except client.ApiException as error:
                if error.status != 409:
                    raise TrainingJobError(_refusal(name, self.namespace, error)) from error
            else:
                return
            found = self._read(name)
            if found is None:
                continue  # it has gone in the meantime
            is_going = "deletionTimestamp" in found["metadata"]
            if not is_going and _state(found) != "Failed":
                _LOGGER.info("The TFJob %s is there already: waiting for it", name)
                return
            if self.clock() >= deadline:
                raise TrainingJobError(
                    f"The TFJob {name} of an earlier try is still there {self.patience_secs:g} s after it "
                    f"was to be deleted. Look at it: kubectl -n {self.namespace} get {PLURAL} {name} -o yaml"
                )
            if not is_going:
                _LOGGER.warning("The TFJob %s of an earlier try has failed: making it anew", name)
                self._delete(name, found["metadata"].get("uid"))
            self.sleep(self.poll_secs)

    def _wait(self, name: str) -> dict[str, Any]:
        last = ""
        while True:
            job = self._read(name)
            if job is None:
                raise TrainingJobError(f"The TFJob {name} was deleted.")
            state = _state(job)
            if state != last:
                _LOGGER.info("TFJob %s: %s", name, state)
                last = state
            if state in ("Succeeded", "Failed"):
                return job
            self.sleep(self.poll_secs)

    def _read(self, name: str) -> dict[str, Any] | None:
        """Returns a job; None if there is none."""
        from kubernetes import client

        def read() -> dict[str, Any]:
            found: dict[str, Any] = client.CustomObjectsApi(
                self.client
            ).get_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, name, _request_timeout=_REQUEST_SECS
            )
            return found

        try:
            return self._persist("reading", name, read)
        except client.ApiException as error:
            if error.status == 404:
                return None
            raise TrainingJobError(
                f"The TFJob {name} can't be read: {error.status} {_message(error)}"
            ) from error

    def _persist(
        self,
        doing: str,
        name: str,
        call: Callable[[], _Answer],
        patience_secs: float | None = None,
    ) -> _Answer:
        """Calls Kubernetes, again and again while it is out of reach."""
        from kubernetes import client
        from urllib3.exceptions import HTTPError

        patience = self.patience_secs if patience_secs is None else patience_secs
        since = self.clock()
        while True:
            try:
                return call()
            except (client.ApiException, HTTPError) as error:
                if not _is_transient(error):
                    raise
                if self.clock() - since >= patience:
                    raise TrainingJobError(
                        f"Kubernetes has been out of reach for {patience:g} s ({doing} the TFJob "
                        f"{name}): {_message(error)}. A job that was submitted goes on, and this step waits "
                        "for it when it is tried again."
                    ) from error
                _LOGGER.warning("%s the TFJob %s: %s; trying again", doing, name, _message(error))
                self.sleep(self.poll_secs)

    def _delete(
        self, name: str, uid: str | None = None, patience_secs: float | None = None
    ) -> None:
        """Deletes a job with its pods; the names of both are free when it has gone.

        Args:
          name: Of the job.
          uid: Another job of this name is left alone. Default: any is meant.
          patience_secs: How long Kubernetes may be out of reach. Default: as in all else.
        """
        from kubernetes import client

        options = client.V1DeleteOptions(
            propagation_policy="Foreground",
            preconditions=client.V1Preconditions(uid=uid) if uid else None,
        )

        def delete() -> None:
            client.CustomObjectsApi(self.client).delete_namespaced_custom_object(
                GROUP,
                VERSION,
                self.namespace,
                PLURAL,
                name,
                body=options,
                _request_timeout=_REQUEST_SECS,
            )

        try:
            self._persist("deleting", name, delete, patience_secs)
        except client.ApiException as error:
            if error.status not in (404, 409):  # it has gone, or is another one
                raise TrainingJobError(
                    f"The TFJob {name} could not be deleted: {error.status} {_message(error)}"
                ) from error

    def _delete_and_go_on(self, name: str) -> None:
        """Deletes a job; that it can't hides no other error."""
        try:
            self._delete(name, patience_secs=0.0)
        except TrainingJobError as error:
            _LOGGER.warning("%s", error)

    def _pods(self, name: str) -> list[Any]:
        from kubernetes import client

        listed = client.CoreV1Api(self.client).list_namespaced_pod(
            self.namespace,
            label_selector=f"training.kubeflow.org/job-name={name}",
            _request_timeout=_REQUEST_SECS,
        )
        return list(listed.items)

    def _log(self, pod: str) -> str:
        from kubernetes import client

        return str(
            client.CoreV1Api(self.client).read_namespaced_pod_log(
                pod,
                self.namespace,
                container=CONTAINER,
                tail_lines=_LOG_LINES,
                _request_timeout=_REQUEST_SECS,
            )
        )

    def _keep_logs(self, name: str, log_dir: Path | None) -> None:
        """Keeps what the pods have printed that are still there; that it can't hides no other error."""
        from kubernetes import client
        from urllib3.exceptions import HTTPError

        if log_dir is None:
            return
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
            for pod in self._pods(name):
                (log_dir / f"{pod.metadata.name}.log").write_text(
                    self._log(pod.metadata.name), encoding="utf-8"
                )
        except (client.ApiException, HTTPError, OSError) as error:
            _LOGGER.warning("The logs of the TFJob %s are lost: %s", name, _message(error))

    def _why(self, name: str, job: Mapping[str, Any]) -> str:
        from kubernetes import client
        from urllib3.exceptions import HTTPError

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
        except (client.ApiException, HTTPError) as error:
            _LOGGER.warning("The pods of the TFJob %s can't be read: %s", name, _message(error))
        return f"the TFJob {name} failed: {message}"


def _state(job: Mapping[str, Any]) -> str:
    conditions = (job.get("status") or {}).get("conditions") or []
    true = {one["type"] for one in conditions if one["status"] == "True"}
    return next((state for state in _STATES if state in true), "Pending")


def _is_transient(error: Any) -> bool:
    """Returns whether Kubernetes may answer later: no connection, or an error of its own."""
    status = getattr(error, "status", 0) or 0  # 0 is no answer at all
    return status == 0 or status >= 500 or status == _TOO_MANY_REQUESTS


def _refusal(name: str, namespace: str, error: Any) -> str:
    advice = (
        f"The service account of the Trainer's step needs the verbs create, get and delete of "
        f"{PLURAL}.{GROUP} in the namespace {namespace}."
        if error.status in _DENIED
        else "Is the training operator installed? Without it, leave kubeflow.training_job out."
        if error.status == 404
        else ""
    )
    return f"Kubernetes has refused the TFJob {name}: {error.status} {_message(error)} {advice}".rstrip()


def _message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (AttributeError, TypeError, ValueError, LookupError):
        return str(getattr(error, "reason", None) or error)
