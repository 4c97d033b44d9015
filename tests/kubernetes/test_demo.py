"""The demo, from the CSV to the pushed model, in pods that Kubernetes' *restricted* profile admits."""

import json

import pytest

from pipelines.config.pod_spec import restricted
from tests.kubernetes.namespace import USER, result_of

STATUS = "grep -E '^(Uid|CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status"


def test_the_process_has_no_privilege(demo):
    touch = "touch /tmp/here && touch /opt/venv/there"
    output = demo.run("rights", "sh", "-c", f"exec 2>&1; {STATUS}; {touch} || true")
    status = dict(line.split(":\t", 1) for line in output.splitlines() if ":\t" in line)
    assert status["Uid"].split() == [str(USER)] * 4
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")  # 2: a filter
    assert "cannot touch '/opt/venv/there': Read-only file system" in output


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runAsNonRoot", None),
        ("allowPrivilegeEscalation", True),
        ("capabilities", {"drop": []}),
        ("seccompProfile", None),
    ],
)
def test_kubernetes_refuses_a_pod_with_less(demo, key, value):
    context = {**restricted(), key: value}
    container = {"name": "main", "image": "any", "securityContext": context}
    with pytest.raises(RuntimeError, match=f'violates PodSecurity "restricted:latest".*{key}'):
        demo.start("less", "true", containers=[container], volumes=[])


@pytest.mark.timeout(3600)
def test_the_demo_pushes_a_model(demo, demo_run, cluster):
    (code, output), _ = demo_run
    print(output)
    result = result_of(output)
    assert (code, result["status"]) == (0, "pushed")
    assert 0.6 < result["metrics"]["auc"] < 1
    model = demo.volume / "root/serving" / str(result["version"]) / "saved_model.pb"
    assert model.stat().st_uid == USER
    for pod in demo.read("pods")["items"]:
        (container,) = pod["spec"]["containers"]
        print(pod["metadata"]["name"], json.dumps(container["securityContext"], sort_keys=True))
        assert container["securityContext"] == {**restricted(), "readOnlyRootFilesystem": True}
    # No pod has asked Kubernetes for anything.
    assert "system:serviceaccount:demo" not in (cluster.state / "audit.log").read_text()


def test_one_pod_at_a_time_runs_in_a_root(demo_run):
    (code, _), (refused, reason) = demo_run
    print(reason)
    assert (code, refused) == (0, 2)
    assert "Another run is in progress" in reason
