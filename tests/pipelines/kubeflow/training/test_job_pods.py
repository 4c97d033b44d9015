import ssl

import pytest
from kubernetes import client
from urllib3.exceptions import MaxRetryError, ProtocolError, SSLError

from pipelines.kubeflow.training.job_pods import JobPods, api_message, is_transient

LOGS = {"killed": "step 7\n", "fails": "a traceback\nValueError: odd row\n \n", "silent": "\n"}

FAULT = "[SSL: CERTIFICATE_VERIFY_FAILED] CA cert does not include key usage extension"
REFUSED_CERTIFICATE = MaxRetryError(None, "/apis/batch/v1", SSLError(ssl.SSLCertVerificationError(1, FAULT)))


def pod(name, code=None, phase="Failed", reason="Error"):
    """Returns a pod that has ended with a code, or of which Kubernetes does not say how it ended."""
    ended = client.V1ContainerStateTerminated(exit_code=code, reason=reason) if code is not None else None
    statuses = ended and [
        client.V1ContainerStatus(
            name="tensorflow", image="i", image_id="i", ready=False, restart_count=0,
            state=client.V1ContainerState(terminated=ended),
        )
    ]  # fmt: skip
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name),
        status=client.V1PodStatus(phase=phase, container_statuses=statuses),
    )


@pytest.fixture
def why(monkeypatch):
    """Returns a function that says why a job has failed, by its pods and the reason of Kubernetes."""

    def say(pods, reason):
        monkeypatch.setattr(JobPods, "_pods", lambda self, name: pods)
        monkeypatch.setattr(JobPods, "_log", lambda self, name: LOGS[name])
        failed = {"type": "Failed", "status": "True", "message": "It failed.", "reason": reason}
        return JobPods(None, "ml").why("a", {"status": {"conditions": [failed]}})

    return say


FAILED = "the Job a failed: It failed."


@pytest.mark.parametrize(
    ("pods", "reason", "said"),
    [
        ([pod("killed", 137), pod("fails", 1)], "PodFailurePolicy", "fails: ValueError: odd row"),
        (
            [pod("silent", 1), pod("killed", 137, reason="OOMKilled")],
            "BackoffLimitExceeded",
            f"{FAILED} killed, exit code 137 (OOMKilled): step 7",
        ),
        ([pod("killed", 137)], "DeadlineExceeded", FAILED),
        ([pod("fails", 0, phase="Succeeded"), pod("silent", 1)], "PodFailurePolicy", FAILED),
        ([pod("fails")], "PodFailurePolicy", "fails: ValueError: odd row"),
    ],
    ids=[
        "a task that has failed itself comes before one that was killed", "memory that ran out",
        "no pod is to blame for the deadline", "without a pod, Kubernetes has the word",
        "a pod of which Kubernetes does not say how it ended",
    ],
)  # fmt: skip
def test_the_reason_of_a_failed_job(why, pods, reason, said):
    assert why(pods, reason) == said


def test_logs_that_cannot_be_read_hide_no_error(monkeypatch, tmp_path, caplog):
    def lose(self, name):
        raise ProtocolError("connection aborted")

    monkeypatch.setattr(JobPods, "_pods", lose)
    pods = JobPods(None, "ml")
    pods.keep_logs("a", tmp_path / "logs")
    assert "The logs of the Job a are lost: connection aborted" in caplog.text
    assert pods.why("a", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}) == (
        "the Job a failed: "
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (client.ApiException(status=503), True),
        (client.ApiException(status=429), True),
        (client.ApiException(status=0), True),
        (ProtocolError("connection aborted"), True),
        (REFUSED_CERTIFICATE, False),
        (client.ApiException(status=403), False),
        (client.ApiException(status=409), False),
    ],
)
def test_what_may_be_otherwise_later(error, expected):
    assert is_transient(error) == expected


def test_what_kubernetes_says_is_the_message():
    said = client.ApiException(status=403, reason="Forbidden")
    assert api_message(said) == "Forbidden"
    said.body = '{"kind": "Status", "message": "jobs.batch is forbidden"}'
    assert api_message(said) == "jobs.batch is forbidden"
    said.body = "<html>a proxy</html>"
    assert api_message(said) == "Forbidden"
    assert api_message(ProtocolError("connection aborted")) == "connection aborted"
