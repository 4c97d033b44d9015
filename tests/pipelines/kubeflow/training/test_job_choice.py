import contextlib
import logging

import pytest

from pipelines.config.kubeflow import TrainingJobConfig
from pipelines.kubeflow.training.cluster_jobs import TrainingJobError
from pipelines.kubeflow.training.job_choice import jobs_of_settings
from tests.pipelines.kubeflow.kubernetes_server import KubernetesServer, RefusedError


@pytest.fixture
def server(tmp_path):
    with contextlib.closing(KubernetesServer(tmp_path)) as started:
        yield started


def chosen(server, **settings):
    """Returns the name of the kind of job that settings come to."""
    given = TrainingJobConfig(api_server=server.url, poll_secs=0.05, **settings)
    return jobs_of_settings(given.model_dump(mode="json")).kind.name


def test_the_kind_is_a_tfjob_unless_the_settings_say_another_one(server):
    server.refuses = RefusedError(500, "nobody is to be asked")
    assert chosen(server) == "TFJob"
    assert chosen(server, kind="tfjob") == "TFJob"
    assert chosen(server, kind="job") == "Job"


@pytest.mark.parametrize(
    ("has_operator", "kind", "why"),
    [
        (True, "TFJob", "serves kubeflow.org/v1 tfjobs"),
        (False, "Job", "does not serve kubeflow.org/v1 tfjobs"),
    ],
)
def test_auto_asks_kubernetes_and_says_what_it_has_found(server, caplog, has_operator, kind, why):
    server.has_operator = has_operator
    with caplog.at_level(logging.INFO, "pipelines"):
        assert chosen(server, kind="auto") == kind
    assert why in caplog.text


def test_auto_decides_nothing_without_an_answer(server):
    server.refuses = RefusedError(403, "discovery is forbidden")
    with pytest.raises(
        TrainingJobError, match=r'403 discovery is forbidden.*training_job.kind to "tfjob" or "job"'
    ):
        chosen(server, kind="auto")


def test_outside_of_a_cluster():
    settings = TrainingJobConfig().model_dump(mode="json")
    with pytest.raises(TrainingJobError, match=r"training_job.api_server"):
        jobs_of_settings(settings)
