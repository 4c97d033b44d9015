"""Submits the Job that trains to Kubernetes, waits for it, and reports why it failed."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from pipelines.config.kubeflow import TrainingJobConfig
from pipelines.kubeflow.training.indexed_job import Body, service, state
from pipelines.kubeflow.training.job_pods import REQUEST_SECS, JobPods, api_message, is_transient
from pipelines.kubeflow.training.training_job import step_namespace

_LOGGER = logging.getLogger(__name__)

_METHODS = {"submitting": "POST", "reading": "GET", "deleting": "DELETE"}
_PATHS = {
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "Service": "/api/v1/namespaces/{namespace}/services",
}
_DENIED = (401, 403)
_PATIENCE_SECS = 600.0


class TrainingJobError(RuntimeError):
    """A Job could not be created, or failed."""


@dataclass(frozen=True)
class ClusterJobs:
    """Training Jobs of a namespace; the pods of each are a cluster."""

    client: Any  # `ApiClient` of the `kubernetes` package
    namespace: str
    poll_secs: float  # Seconds between two requests for the state of a Job
    # Seconds that Kubernetes may be out of reach, or that deleting a Job may take.
    patience_secs: float = _PATIENCE_SECS
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def run(self, body: Body, log_dir: Path | None = None) -> None:
        """Submits a Job and waits until it has succeeded; keeps the logs of its pods.

        An existing Job of this name is waited for, or replaced if it has failed. The Job is deleted when this
        process is stopped, and continues when Kubernetes is out of reach.
        """
        name = body["metadata"]["name"]
        pods = JobPods(self.client, self.namespace)
        try:
            self._create_service(self._create(name, body))
            job = self._wait(name)
        except Exception:
            pods.keep_logs(name, log_dir)
            raise
        except BaseException:  # the step is stopped, and so are the pods
            self._delete_quietly(name)  # first, because there are only seconds left
            pods.keep_logs(name, log_dir)  # a pod that ends still has its log
            raise
        pods.keep_logs(name, log_dir)
        if state(job) == "Failed":
            raise TrainingJobError(pods.why(name, job))

    def _create(self, name: str, body: Body) -> Body:
        """Submits a Job, unless one of this name exists that has not failed; returns Kubernetes' version."""
        deadline = self.clock() + self.patience_secs
        while True:
            try:
                return self._call("submitting", "Job", name, body)
            except client.ApiException as error:
                if error.status != 409:  # the name is taken
                    raise self._refusal("Job", name, error) from None
            existing = self._read(name)
            if existing is None:
                continue  # it was deleted since
            is_going = "deletionTimestamp" in existing["metadata"]
            if not is_going and state(existing) != "Failed":
                _LOGGER.info("The Job %s exists already: waiting for it", name)
                return existing
            if self.clock() >= deadline:
                raise TrainingJobError(
                    f"The Job {name} of an earlier attempt still exists {self.patience_secs:g} s after it "
                    f"was deleted. Look at it: kubectl -n {self.namespace} get jobs.batch {name} -o yaml"
                )
            if not is_going:
                _LOGGER.warning("The Job %s of an earlier attempt has failed: replacing it", name)
                self._delete(name, existing["metadata"].get("uid"))
            self.sleep(self.poll_secs)

    def _create_service(self, job: Body) -> None:
        """Creates the Service of a Job's pods; a Service of an earlier Job is replaced."""
        body = service(job)
        name, (owner,) = body["metadata"]["name"], body["metadata"]["ownerReferences"]
        deadline = self.clock() + self.patience_secs
        while True:
            try:
                self._call("submitting", "Service", name, body)
                return
            except client.ApiException as error:
                if error.status != 409:
                    self._delete_quietly(owner["name"])
                    raise self._refusal("Service", name, error) from None
            try:
                existing = self._call("reading", "Service", name)["metadata"]
                is_going = "deletionTimestamp" in existing
                owners = [reference["uid"] for reference in existing.get("ownerReferences", ())]
                if owner["uid"] in owners and not is_going:
                    return
                if owner["uid"] not in owners and not is_going:
                    self._call("deleting", "Service", name)
            except client.ApiException as error:
                if error.status != 404:  # it was deleted since
                    raise self._refusal("Service", name, error) from None
            if self.clock() >= deadline:
                raise TrainingJobError(
                    f"The Service {name} of an earlier Job still exists {self.patience_secs:g} s after it "
                    f"was deleted. Delete it: kubectl -n {self.namespace} delete service {name}"
                )
            self.sleep(self.poll_secs)

    def _wait(self, name: str) -> Body:
        last = ""
        while True:
            job = self._read(name)
            if job is None:
                raise TrainingJobError(f"The Job {name} was deleted.")
            now = state(job)
            if now != last:
                _LOGGER.info("Job %s: %s", name, now)
                last = now
            if now in ("Succeeded", "Failed"):
                return job
            self.sleep(self.poll_secs)

    def _read(self, name: str) -> Body | None:
        """Returns a Job; None if it does not exist."""
        try:
            return self._call("reading", "Job", name)
        except client.ApiException as error:
            if error.status == 404:
                return None
            raise TrainingJobError(
                f"The Job {name} can't be read: {error.status} {api_message(error)}"
            ) from None

    def _delete(self, name: str, uid: str | None = None, patience_secs: float | None = None) -> None:
        """Deletes a Job with its pods, whose names are free afterwards; with `uid`, only that Job."""
        options: Body = {"propagationPolicy": "Foreground"}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self._call("deleting", "Job", name, options, patience_secs)
        except client.ApiException as error:
            if error.status not in (404, 409):  # it was deleted, or is another Job
                raise TrainingJobError(
                    f"The Job {name} could not be deleted: {error.status} {api_message(error)}"
                ) from None

    def _delete_quietly(self, name: str) -> None:
        """Deletes a Job; only logs an error, which must not hide another error."""
        try:
            self._delete(name, patience_secs=0.0)
        except TrainingJobError as error:
            _LOGGER.warning("%s", error)

    def _call(
        self, doing: str, kind: str, name: str, body: Body | None = None, patience_secs: float | None = None
    ) -> Body:
        """Calls Kubernetes, and tries again while it is out of reach."""
        patience = self.patience_secs if patience_secs is None else patience_secs
        since = self.clock()
        while True:
            try:
                answer: Body = self.client.call_api(
                    _PATHS[kind] if doing == "submitting" else f"{_PATHS[kind]}/{{name}}",
                    _METHODS[doing],
                    {"namespace": self.namespace, "name": name},
                    header_params={"Accept": "application/json"},
                    body=body,
                    response_type="object",
                    auth_settings=["BearerToken"],
                    _return_http_data_only=True,
                    _request_timeout=REQUEST_SECS,
                )
                return answer
            except (client.ApiException, HTTPError) as error:
                if not is_transient(error):
                    if isinstance(error, client.ApiException):
                        raise
                    raise TrainingJobError(
                        f"The certificate of Kubernetes' API is refused ({doing} the {kind} {name}): "
                        f"{api_message(error)}. Correct the certificate authority of the "
                        "cluster, or of the pod."
                    ) from error
                if self.clock() - since >= patience:
                    raise TrainingJobError(
                        f"Kubernetes has been out of reach for {patience:g} s ({doing} the {kind} {name}): "
                        f"{api_message(error)}. A Job that was submitted continues, and this step waits for "
                        "it when it is tried again."
                    ) from error
                _LOGGER.warning("%s the %s %s: %s; trying again", doing, kind, name, api_message(error))
                self.sleep(self.poll_secs)

    def _refusal(self, kind: str, name: str, error: Any) -> TrainingJobError:
        advice = ""
        if error.status in _DENIED:
            advice = (
                "The service account of the Trainer's step needs the verbs create, get and delete of "
                f"jobs.batch and of services in the namespace {self.namespace}."
            )
        elif error.status == 404:
            advice = (
                f"Is {self.namespace} a namespace of this Kubernetes? Without kubeflow.training_job the "
                "tasks are processes of the Trainer's pod."
            )
        text = f"Kubernetes has refused the {kind} {name}: {error.status} {api_message(error)} {advice}"
        return TrainingJobError(text.rstrip())


def jobs_of_settings(settings: TrainingJobConfig) -> ClusterJobs:
    if settings.api_server:
        api = client.ApiClient(client.Configuration(host=settings.api_server))
    else:
        try:
            config.load_incluster_config()
        except config.ConfigException as error:
            raise TrainingJobError(
                f"kubeflow.training_job: this process is not in a Kubernetes cluster ({error}). Give "
                "kubeflow.training_job.api_server, or leave kubeflow.training_job out: the tasks are then "
                "processes of the Trainer's pod."
            ) from error
        api = client.ApiClient()
    namespace = settings.namespace or step_namespace() or "kubeflow"
    return ClusterJobs(api, namespace, settings.poll_secs)
