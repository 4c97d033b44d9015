import json
import ssl

import pytest
from kubernetes import client
from urllib3.exceptions import MaxRetryError, ProtocolError, SSLError

from pipelines.kubeflow.training.job_pods import JobPods, api_message, is_transient

LOGS = {"killed": "step 7\n", "fails": "a traceback\nValueError: odd row\n \n", "silent": "\n"}

REFUSED_CERTIFICATE = MaxRetryError(
    None,
    "/apis/batch/v1",
    SSLError(
        ssl.SSLCertVerificationError(
            1, "[SSL: CERTIFICATE_VERIFY_FAILED] CA cert does not include key usage extension"
        )
    ),
)


def pod(name, code, phase="Failed", reason="Error"):
    ended = client.V1ContainerStateTerminated(exit_code=code, reason=reason)
    status = client.V1ContainerStatus(
        name="tensorflow",
        state=client.V1ContainerState(terminated=ended),
        image="i",
        image_id="i",
        ready=False,
        restart_count=0,
    )
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name),
        status=client.V1PodStatus(phase=phase, container_statuses=[status]),
    )


@pytest.fixture
def why(monkeypatch):
    """Returns a function that says why a job has failed, by its pods and the reason of Kubernetes."""

    def say(pods, reason="PodFailurePolicy"):
        monkeypatch.setattr(JobPods, "_pods", lambda self, name: pods)
        monkeypatch.setattr(JobPods, "_log", lambda self, name: LOGS[name])
        failed = {"type": "Failed", "status": "True", "message": "It failed.", "reason": reason}
        return JobPods(None, "ml").why("a", {"status": {"conditions": [failed]}})

    return say


def test_a_task_that_has_failed_itself_comes_before_one_that_was_killed(why):
    assert why([pod("killed", 137), pod("fails", 1)]) == "fails: ValueError: odd row"


def test_memory_that_ran_out_is_the_reason(why):
    said = why([pod("silent", 1), pod("killed", 137, reason="OOMKilled")], "BackoffLimitExceeded")
    assert said == "the Job a failed: It failed. killed, exit code 137 (OOMKilled): step 7"


def test_no_pod_is_to_blame_for_the_deadline(why):
    assert why([pod("killed", 137)], "DeadlineExceeded") == "the Job a failed: It failed."


def test_without_a_pod_kubernetes_has_the_word(why):
    assert why([pod("fails", 0, phase="Succeeded"), pod("silent", 1)]) == ("the Job a failed: It failed.")


def test_a_pod_of_which_kubernetes_does_not_say_how_it_ended(why):
    lost = client.V1Pod(metadata=client.V1ObjectMeta(name="fails"), status=client.V1PodStatus(phase="Failed"))
    assert why([lost]) == "fails: ValueError: odd row"


def test_logs_that_cannot_be_read_hide_no_error(why, monkeypatch, tmp_path, caplog):
    why([])

    def lose(self, name):
        raise ProtocolError("connection aborted")

    monkeypatch.setattr(JobPods, "_pods", lose)
    pods = JobPods(None, "ml")
    pods.keep_logs("a", tmp_path / "logs")
    assert "The logs of the Job a are lost: connection aborted" in caplog.text
    job = json.loads('{"status": {"conditions": [{"type": "Failed", "status": "True"}]}}')
    assert pods.why("a", job) == "the Job a failed: "


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
