import contextlib

import pytest

from pipelines.config.kubeflow import TrainingJobConfig
from pipelines.kubeflow.training.cluster_jobs import jobs_of_settings
from tests.pipelines.kubeflow.kubernetes_server import KubernetesServer


@pytest.fixture
def server(tmp_path):
    with contextlib.closing(KubernetesServer(tmp_path)) as started:
        yield started


@pytest.fixture
def jobs(server):
    return jobs_of_settings(TrainingJobConfig(api_server=server.url, namespace="ml", poll_secs=0.05))
