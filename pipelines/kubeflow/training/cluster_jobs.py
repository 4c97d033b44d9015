"""Submits the job that trains to Kubernetes, waits for it, and says why it failed."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pipelines.config.kubeflow import TrainingJobConfig
from pipelines.kubeflow.training.indexed_job import (
    GROUP,
    PLURAL,
    VERSION,
    Body,
    service,
    state,
)
from pipelines.kubeflow.training.job_pods import JobPods
from pipelines.kubeflow.training.kubernetes_errors import REQUEST_SECS, is_transient, message_of
from pipelines.kubeflow.training.training_job import step_namespace

_LOGGER = logging.getLogger(__name__)

_DENIED = (401, 403)
_PATIENCE_SECS = 600.0
_RESOURCE = f"{PLURAL}.{GROUP}"

_Answer = TypeVar("_Answer")


class TrainingJobError(RuntimeError):
    """A job could not be created, or failed."""


@dataclass(frozen=True)
class ClusterJobs:
    """Training jobs of a namespace; the pods of each are a cluster."""

    client: Any  # `ApiClient` of the `kubernetes` package
    namespace: str
    poll_secs: float  # Seconds between two requests for the state of a job
    # Seconds that Kubernetes may be out of reach, or that deleting a job may take.
    patience_secs: float = _PATIENCE_SECS
    sleep: Callable[[float], None] = time.sleep  # Function that waits between two requests
    clock: Callable[[], float] = time.monotonic  # Function that returns seconds

    def run(self, body: Body, log_dir: Path | None = None) -> None:
        """Submits a job and waits until it has succeeded.

        If a job of this name exists, it is waited for, or deleted and replaced if it has failed.
        The job is deleted when this process is stopped. It goes on when Kubernetes is out of reach.

        `log_dir`: folder for the logs of its pods. Default: no logs are kept.
        """
        name = body["metadata"]["name"]
        pods = JobPods(self.client, self.namespace)
        try:
            self._complete(self._create(name, body))
            job = self._wait(name)
        except Exception:
            pods.keep_logs(name, log_dir)
            raise
        except BaseException:  # the step is stopped: so are the pods
            self._delete_and_go_on(name)  # at once: there are only seconds left
            pods.keep_logs(name, log_dir)  # a pod that ends still has its log
            raise
        pods.keep_logs(name, log_dir)
        if state(job) == "Failed":
            raise TrainingJobError(pods.why(name, job))

    def _create(self, name: str, body: Body) -> Body:
        """Submits a job, unless one of this name exists that has not failed; returns Kubernetes' version."""
        from kubernetes import client

        def create() -> Body:
            made: Body = client.CustomObjectsApi(self.client).create_namespaced_custom_object(
                *self._place, body, _request_timeout=REQUEST_SECS
            )
            return made

        deadline = self.clock() + self.patience_secs
        while True:
            try:
                return self._persist("submitting", f"Job {name}", create)
            except client.ApiException as error:
                if error.status != 409:
                    raise TrainingJobError(self._refusal(f"Job {name}", error)) from None
            found = self._read(name)
            if found is None:
                continue  # it has gone in the meantime
            is_going = "deletionTimestamp" in found["metadata"]
            if not is_going and state(found) != "Failed":
                _LOGGER.info("The %s is there already: waiting for it", f"Job {name}")
                return found
            if self.clock() >= deadline:
                raise TrainingJobError(
                    f"The Job {name} of an earlier try is still there "
                    f"{self.patience_secs:g} s after it was to be deleted. Look at it: kubectl -n "
                    f"{self.namespace} get {_RESOURCE} {name} -o yaml"
                )
            if not is_going:
                _LOGGER.warning("The %s of an earlier try has failed: replacing it", f"Job {name}")
                self._delete(name, found["metadata"].get("uid"))
            self.sleep(self.poll_secs)

    def _complete(self, job: Body) -> None:
        """Creates the Service of a job's pods; a Service of an earlier job is replaced."""
        from kubernetes import client

        core, body = client.CoreV1Api(self.client), service(job)
        what, deadline = f"Service {body['metadata']['name']}", self.clock() + self.patience_secs
        while not self._is_there(core, what, body):
            if self.clock() >= deadline:
                raise TrainingJobError(
                    f"The {what} of an earlier Job is still there {self.patience_secs:g} s after it was "
                    f"to be deleted. Delete it: kubectl -n {self.namespace} delete {what.lower()}"
                )
            self.sleep(self.poll_secs)

    def _is_there(self, core: Any, what: str, body: Body) -> bool:
        """Creates a Service; if another job's Service has its name, deletes that and returns False."""
        from kubernetes import client

        name, (owner,) = body["metadata"]["name"], body["metadata"]["ownerReferences"]

        def create() -> None:
            core.create_namespaced_service(self.namespace, body, _request_timeout=REQUEST_SECS)

        def read() -> Any:
            return core.read_namespaced_service(name, self.namespace, _request_timeout=REQUEST_SECS)

        def delete() -> None:
            core.delete_namespaced_service(name, self.namespace, _request_timeout=REQUEST_SECS)

        try:
            self._persist("submitting", what, create)
        except client.ApiException as error:
            if error.status != 409:
                self._delete_and_go_on(owner["name"])
                raise TrainingJobError(self._refusal(what, error)) from None
        else:
            return True
        try:
            found = self._persist("reading", what, read)
            owners = found.metadata.owner_references or ()
            if any(one.uid == owner["uid"] for one in owners):
                return found.metadata.deletion_timestamp is None
            if found.metadata.deletion_timestamp is None:
                self._persist("deleting", what, delete)
        except client.ApiException as error:
            if error.status != 404:  # it has gone in the meantime
                raise TrainingJobError(self._refusal(what, error)) from None
        return False

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
        """Returns a job; None if it does not exist."""
        from kubernetes import client

        def read() -> Body:
            found: Body = client.CustomObjectsApi(self.client).get_namespaced_custom_object(
                *self._place, name, _request_timeout=REQUEST_SECS
            )
            return found

        try:
            return self._persist("reading", f"Job {name}", read)
        except client.ApiException as error:
            if error.status == 404:
                return None
            raise TrainingJobError(
                f"The Job {name} can't be read: {error.status} {message_of(error)}"
            ) from None

    def _persist(
        self,
        doing: str,
        what: str,
        call: Callable[[], _Answer],
        patience_secs: float | None = None,
    ) -> _Answer:
        """Calls Kubernetes, and tries again while it is out of reach."""
        from kubernetes import client
        from urllib3.exceptions import HTTPError

        patience = self.patience_secs if patience_secs is None else patience_secs
        since = self.clock()
        while True:
            try:
                return call()
            except (client.ApiException, HTTPError) as error:
                if not is_transient(error):
                    if isinstance(error, client.ApiException):
                        raise
                    raise TrainingJobError(
                        f"The certificate of Kubernetes' API is refused ({doing} the {what}): "
                        f"{message_of(error)}. Correct the cluster's certificate authority, or the "
                        "one that the pod is given."
                    ) from error
                if self.clock() - since >= patience:
                    raise TrainingJobError(
                        f"Kubernetes has been out of reach for {patience:g} s ({doing} the "
                        f"{what}): {message_of(error)}. A job that was submitted goes on, and "
                        "this step waits for it when it is tried again."
                    ) from error
                _LOGGER.warning("%s the %s: %s; trying again", doing, what, message_of(error))
                self.sleep(self.poll_secs)

    def _delete(
        self, name: str, uid: str | None = None, patience_secs: float | None = None
    ) -> None:
        """Deletes a job with its pods; once it is gone, their names are free.

        `uid`: uid of the job; another job of this name is left alone. Default: any job of this name.
        `patience_secs`: seconds that Kubernetes may be out of reach. Default: `self.patience_secs`.
        """
        from kubernetes import client

        options = client.V1DeleteOptions(
            propagation_policy="Foreground",
            preconditions=client.V1Preconditions(uid=uid) if uid else None,
        )

        def delete() -> None:
            client.CustomObjectsApi(self.client).delete_namespaced_custom_object(
                *self._place, name, body=options, _request_timeout=REQUEST_SECS
            )

        try:
            self._persist("deleting", f"Job {name}", delete, patience_secs)
        except client.ApiException as error:
            if error.status not in (404, 409):  # it has gone, or is another one
                raise TrainingJobError(
                    f"The Job {name} could not be deleted: {error.status} {message_of(error)}"
                ) from None

    def _delete_and_go_on(self, name: str) -> None:
        """Deletes a job; an error is only logged, so that it does not hide another one."""
        try:
            self._delete(name, patience_secs=0.0)
        except TrainingJobError as error:
            _LOGGER.warning("%s", error)

    @property
    def _place(self) -> tuple[str, str, str, str]:
        return GROUP, VERSION, self.namespace, PLURAL

    def _refusal(self, what: str, error: Any) -> str:
        advice = (
            f"The service account of the Trainer's step needs the verbs create, get and delete of "
            f"{_RESOURCE} and of services in the namespace {self.namespace}."
            if error.status in _DENIED
            else f"Is {self.namespace} a namespace of this Kubernetes? Without kubeflow.training_job the "
            "tasks are processes of the Trainer's pod."
            if error.status == 404
            else ""
        )
        return f"Kubernetes has refused the {what}: {error.status} {message_of(error)} {advice}".rstrip()


def jobs_of_settings(
    settings: TrainingJobConfig, sleep: Callable[[float], None] = time.sleep
) -> ClusterJobs:
    """Returns the jobs of `[kubeflow.training_job]`."""
    namespace = settings.namespace or step_namespace() or "kubeflow"
    client = _client(settings.api_server)
    return ClusterJobs(client, namespace, settings.poll_secs, sleep=sleep)


def _client(api_server: str | None) -> Any:
    from kubernetes import client, config

    if api_server:
        return client.ApiClient(client.Configuration(host=api_server))
    try:
        config.load_incluster_config()
    except config.ConfigException as error:
        raise TrainingJobError(
            f"kubeflow.training_job: this process is not in a Kubernetes cluster ({error}). Give "
            "kubeflow.training_job.api_server, or leave kubeflow.training_job out: the tasks "
            "are processes of the Trainer's pod then."
        ) from error
    return client.ApiClient()
