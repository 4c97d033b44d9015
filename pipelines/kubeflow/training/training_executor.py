"""Executor of a Trainer whose cluster is a Kubernetes Job: submits it, waits, evaluates and exports."""

import json
import logging
from dataclasses import asdict
from pathlib import Path

from components.trainer import executor
from components.trainer.cluster_task import ClusterTask
from components.trainer.local_cluster import LocalCluster
from pipelines.kubeflow.training.cluster_jobs import jobs_of_settings
from pipelines.kubeflow.training.indexed_job import manifest
from pipelines.kubeflow.training.training_job import TrainingJob, job_name

_LOGGER = logging.getLogger(__name__)

TASK_FILE = "task.json"


class Executor(executor.Executor):
    """Trains in an indexed Job. All files of a task are in the root, which the pods see."""

    def train_cluster(self, cluster: LocalCluster, task: ClusterTask, log_dir: str | None) -> None:
        """Submits the job, unless an earlier try has submitted it, and waits for it."""
        job = TrainingJob.from_environment()
        folder = Path(task.directories["model_run_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / TASK_FILE
        file.write_text(json.dumps(asdict(task)), encoding="utf-8")
        jobs = jobs_of_settings(job.settings)
        name = job_name(str(folder))
        body = manifest(job, name, jobs.namespace, str(file), cluster.workers, cluster.ps)
        _LOGGER.info("Training in the Job %s in the namespace %s", name, jobs.namespace)
        jobs.run(body, Path(log_dir) if log_dir else None)
