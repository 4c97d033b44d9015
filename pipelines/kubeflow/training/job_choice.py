"""Which kind of job trains: as the settings say, or by what Kubernetes serves."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pipelines.kubeflow.training.cluster_jobs import ClusterJobs, TrainingJobError
from pipelines.kubeflow.training.indexed_jobs import IndexedJobs
from pipelines.kubeflow.training.job_kind import JobKind
from pipelines.kubeflow.training.tfjobs import TfJobs
from pipelines.kubeflow.training.training_job import step_namespace

_LOGGER = logging.getLogger(__name__)

_KINDS: dict[str, JobKind] = {"tfjob": TfJobs(), "job": IndexedJobs()}


def jobs_of_settings(
    settings: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep
) -> ClusterJobs:
    """Returns the jobs of `[kubeflow.training_job]`.

    Args:
      settings: Of the section.
      sleep: Waits between two questions.

    Raises:
      TrainingJobError: This process is in no cluster, and the settings name none; or Kubernetes does not
        say what it serves.
    """
    client = _client(settings["api_server"])
    namespace = settings["namespace"] or step_namespace() or "kubeflow"
    jobs = ClusterJobs(TfJobs(), client, namespace, settings["poll_secs"], sleep=sleep)
    wanted = settings["kind"]
    return replace(jobs, kind=_served_kind(jobs) if wanted == "auto" else _KINDS[wanted])


def _client(api_server: str | None) -> Any:
    from kubernetes import client, config

    if api_server:
        return client.ApiClient(client.Configuration(host=api_server))
    try:
        config.load_incluster_config()
    except config.ConfigException as error:
        raise TrainingJobError(
            f"kubeflow.training_job: this process is in no cluster of Kubernetes ({error}). Give "
            "kubeflow.training_job.api_server, or leave kubeflow.training_job out: the tasks "
            "are processes of the Trainer's pod then."
        ) from error
    return client.ApiClient()


def _served_kind(jobs: ClusterJobs) -> JobKind:
    """Returns TFJobs where Kubernetes serves them, else indexed Jobs."""
    tfjobs, indexed = _KINDS["tfjob"], _KINDS["job"]
    address = f"{tfjobs.group}/{tfjobs.version} {tfjobs.plural}"
    if jobs.is_served():
        _LOGGER.info(
            'training_job.kind = "auto": a TFJob, as this Kubernetes serves %s. If no operator answers '
            'them, set kind = "job".',
            address,
        )
        return tfjobs
    _LOGGER.info(
        'training_job.kind = "auto": an indexed Job, as this Kubernetes does not serve %s.', address
    )
    return indexed
