import pytest

from pipelines.kubeflow.training.indexed_jobs import IndexedJobs
from pipelines.kubeflow.training.job_kind import true_conditions
from pipelines.kubeflow.training.tfjobs import TfJobs


@pytest.mark.parametrize("status", [{}, {"status": None}, {"status": {"conditions": None}}])
def test_a_job_that_nobody_has_looked_at_has_no_conditions(status):
    assert true_conditions(status) == {}


def test_conditions_that_do_not_hold_are_left_out():
    running = {"type": "Running", "status": "False"}
    failed = {"type": "Failed", "status": "True", "message": "why"}
    assert true_conditions({"status": {"conditions": [running, failed]}}) == {"Failed": failed}


def test_what_roles_and_messages_call_them():
    assert [kind.resource for kind in (TfJobs(), IndexedJobs())] == [
        "tfjobs.kubeflow.org",
        "jobs.batch",
    ]
    assert [kind.named("a") for kind in (TfJobs(), IndexedJobs())] == ["TFJob a", "Job a"]


def test_only_a_job_needs_something_beside_it():
    job = {"metadata": {"name": "a", "namespace": "ml", "uid": "1"}}
    assert TfJobs().companions(job) == []
    assert [one["kind"] for one in IndexedJobs().companions(job)] == ["Service"]
