import ssl

import pytest
from kubernetes.client import ApiException
from urllib3.exceptions import MaxRetryError, ProtocolError, SSLError

from pipelines.kubeflow.training.kubernetes_errors import is_transient, message_of

REFUSED_CERTIFICATE = MaxRetryError(
    None,
    "/apis/batch/v1",
    SSLError(
        ssl.SSLCertVerificationError(
            1, "[SSL: CERTIFICATE_VERIFY_FAILED] CA cert does not include key usage extension"
        )
    ),
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ApiException(status=503), True),
        (ApiException(status=429), True),
        (ApiException(status=0), True),
        (ProtocolError("connection aborted"), True),
        (REFUSED_CERTIFICATE, False),
        (ApiException(status=403), False),
        (ApiException(status=409), False),
    ],
)
def test_what_may_be_otherwise_later(error, expected):
    assert is_transient(error) == expected


def test_what_kubernetes_says_is_the_message():
    said = ApiException(status=403, reason="Forbidden")
    assert message_of(said) == "Forbidden"
    said.body = '{"kind": "Status", "message": "jobs.batch is forbidden"}'
    assert message_of(said) == "jobs.batch is forbidden"
    said.body = "<html>a proxy</html>"
    assert message_of(said) == "Forbidden"
    assert message_of(ProtocolError("connection aborted")) == "connection aborted"
