"""The tests of a Kubeflow cluster, against stand-ins of ours for its two servers."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

from tests.kubeflow_cluster.stand_in.executing_server import ExecutingServer
from tests.kubeflow_cluster.stand_in.pods_server import PROJECT, PodsServer
from tests.kubeflow_cluster.target import NotUsableError, Target
from tests.pipelines.kubeflow.loopback import RefusedError

FOLDER = "tests/kubeflow_cluster"
IMAGE = "registry.example.com/pipelines:1.0"
SECS = 3600
# As in the Makefile: without the tests' own conftest.py, which imports TensorFlow.
OPTIONS = ("-m", "pytest", "-q", "-m", "kubeflow_cluster", f"--confcutdir={FOLDER}")


@pytest.fixture
def cluster(tmp_path):
    with contextlib.closing(PodsServer(tmp_path / "pods")) as server:
        yield server


@pytest.fixture
def kubeflow(cluster, tmp_path):
    with contextlib.closing(ExecutingServer(cluster, tmp_path / "kubeflow")) as server:
        yield server


@pytest.fixture
def run(cluster, kubeflow, tmp_path):
    """Runs the tests in a process; its exit code and its output."""

    def run(*arguments, **variables):
        kubeconfig = tmp_path / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig)
        mount = tmp_path / "mount"
        mount.mkdir(exist_ok=True)
        environment = {"HOST": kubeflow.url, "IMAGE": IMAGE, "KUBECONFIG": kubeconfig, "MOUNT": mount}
        environment |= {"HOME": tmp_path, "PYTHONPATH": PROJECT, **variables}
        done = subprocess.run(
            [sys.executable, *OPTIONS, *arguments],
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECS,
        )
        print(done.stdout[-20_000:], done.stderr[-5000:])
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.slow
@pytest.mark.timeout(SECS)
def test_all_of_them(run, cluster, kubeflow, tmp_path):
    code, output = run(FOLDER)
    assert code == 0
    assert re.search(r"^9 passed", output, re.MULTILINE)
    # What is left: the pipeline and its runs.
    assert cluster.objects == {"persistentvolumeclaims": {}, "secrets": {}}
    assert list((tmp_path / "mount").iterdir()) == []
    assert len(kubeflow.pipelines) == 1
    assert not kubeflow.recurring


@pytest.mark.parametrize("host", ["", "localhost:8080"])
def test_without_an_address(host):
    with pytest.raises(NotUsableError, match="HOST is the address of Kubeflow Pipelines, such as"):
        Target.of({"HOST": host, "IMAGE": IMAGE})


def target(url):
    return Target.of({"HOST": url, "IMAGE": IMAGE})


def test_a_server_that_is_not_there(kubeflow):
    kubeflow.close()
    with pytest.raises(NotUsableError, match=r"can't be reached: .*port-forward"):
        target(kubeflow.url).check()


@pytest.mark.parametrize(
    ("reported", "version"), [("2.17.0", (2, 17, 0)), ("v2.5.0-rc.1", (2, 5, 0)), (None, None)]
)
def test_a_version_that_can_be_used(kubeflow, reported, version):
    kubeflow.version = reported
    assert target(kubeflow.url).check() == (version, False)


def test_a_version_that_is_too_old(kubeflow):
    kubeflow.version = "2.4.1"
    with pytest.raises(NotUsableError, match=r"is Kubeflow Pipelines 2\.4\.1\. .* need 2\.5 or newer"):
        target(kubeflow.url).check()


def test_a_version_that_only_the_image_tells(kubeflow, cluster, tmp_path):
    cluster.write_kubeconfig(tmp_path / "kubeconfig")
    here = Target(kubeflow.url, IMAGE, kubeconfig=str(tmp_path / "kubeconfig"))
    kubernetes = here.connect()
    assert here.check_image_of_server(kubernetes) is None
    cluster.image = "ghcr.io/kubeflow/kfp-api-server:2.17.0"
    assert here.check_image_of_server(kubernetes) == (2, 17, 0)
    cluster.image = "ghcr.io/kubeflow/kfp-api-server:2.0.5"
    with pytest.raises(NotUsableError, match=r"is Kubeflow Pipelines 2\.0\.5"):
        here.check_image_of_server(kubernetes)


def test_the_first_kubeflow_pipelines(kubeflow, monkeypatch):
    """It has no v2beta1, and answers as v1beta1."""
    route = kubeflow._route

    def first(method, path, query, body):
        if path.removeprefix("/apis/") == "v1beta1/healthz":
            return {"multi_user": False}
        raise RefusedError(404, "not found")

    monkeypatch.setattr(kubeflow, "_route", first)
    with pytest.raises(NotUsableError, match=r"is Kubeflow Pipelines 1\. .* need 2\.5"):
        target(kubeflow.url).check()
    monkeypatch.setattr(kubeflow, "_route", route)
    assert target(kubeflow.url).check()


def test_another_server_is_refused(kubeflow, monkeypatch):
    monkeypatch.setattr(kubeflow, "_route", lambda *call: "<html>")
    with pytest.raises(NotUsableError, match="does not answer as Kubeflow Pipelines does"):
        target(kubeflow.url).check()


def test_a_server_that_wants_a_token(kubeflow):
    kubeflow.token = "abc"
    with pytest.raises(NotUsableError, match=r"401.*TOKEN_FILE"):
        target(kubeflow.url).check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"HOST": ""}, "HOST is the address of Kubeflow Pipelines"),
        ({"KUBECONFIG": "/nowhere"}, "Kubernetes can't be reached with KUBECONFIG=/nowhere"),
        ({}, f"IMAGE={IMAGE}: ErrImagePull: there is no registry"),
    ],
)
def test_one_message_and_no_test_is_tried(run, cluster, variables, message):
    cluster.waits_for = "ErrImagePull"
    code, output = run(FOLDER, **variables)
    assert code == 2
    (line,) = (line for line in output.splitlines() if "Exit: test-kubeflow-cluster:" in line)
    assert message in line
    assert not re.search(r"\d (failed|error|passed)", output)
    assert cluster.objects == {"persistentvolumeclaims": {}, "secrets": {}}


@pytest.mark.slow
@pytest.mark.timeout(SECS)
def test_a_server_that_leaves_settings_out_and_forgets_its_cache(run, kubeflow):
    kubeflow.faults = {"no environment", "no cache"}
    code, output = run(f"{FOLDER}/test_demo.py")
    assert code == 1
    failed = set(re.findall(r"^FAILED \S+::(\w+)", output, re.MULTILINE))
    assert failed == {"test_pods_have_their_settings", "test_a_recurring_run_comes_from_the_cache"}


@pytest.mark.slow
@pytest.mark.timeout(SECS)
def test_a_server_that_kills_at_once_and_retries_all(run, kubeflow):
    kubeflow.faults = {"kills", "no kept outputs", "no cache"}
    code, output = run(f"{FOLDER}/test_failures.py")
    assert code == 1
    failed = set(re.findall(r"^FAILED \S+::(\w+)", output, re.MULTILINE))
    assert failed == {"test_a_retry_fails_again_and_another_succeeds", "test_a_terminated_run_is_interrupted"}
