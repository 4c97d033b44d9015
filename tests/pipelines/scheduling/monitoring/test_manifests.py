import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pod_spec import pod_spec
from pipelines.scheduling.monitoring.manifests import cron_job, systemd_service


def settings(service):
    return dict(re.findall(r"^(\w+)=(.*)$", service, re.MULTILINE))


def test_a_service_restarts_the_scheduler_lets_it_stop_and_has_secrets_and_volumes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = systemd_service(tmp_path, (), "PYTHONPATH=/opt/code", "--metrics-port", "9200")
    service = settings(text)
    assert shlex.split(service["ExecStart"]) == [
        *(sys.executable, "-m", "estimator_pipelines", "schedule", "run"),
        *("--root", str(tmp_path), "--metrics-port", "9200"),
    ]
    assert service["Environment"] == '"PYTHONPATH=/opt/code"'
    assert service["WorkingDirectory"] == str(tmp_path)
    # The scheduler stops its run itself; a run without memory is not the end of the scheduler.
    assert (service["KillMode"], service["OOMPolicy"], service["Restart"]) == ("mixed", "continue", "always")
    assert int(service["TimeoutStopSec"]) > 120
    monkeypatch.chdir(tmp_path)
    root, code = tmp_path / "taxi root", pathlib.Path("/mnt/code")
    service = settings(systemd_service(root, [code, tmp_path], "A=1"))
    assert shlex.split(service["RequiresMountsFor"]) == ["/mnt/code", str(tmp_path), str(root)]
    assert service["EnvironmentFile"] == "-/etc/pipelines/taxi_root.env"  # `-`: it may be missing


def test_systemd_accepts_the_service(tmp_path, monkeypatch):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    root = tmp_path / '100% of $it\'s "root"\\'
    root.mkdir()
    monkeypatch.chdir(root)
    file = tmp_path / "pipelines.service"
    file.write_text(systemd_service(root, (), "A=b c"))
    words = [program, "verify", "--man=no", str(file)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    said = [line for line in ended.stderr.splitlines() if "pipelines.service" in line]
    assert (ended.returncode, said) == (0, [])
    file.write_text(file.read_text().replace("KillMode=mixed", "KillMode=nonsense"))
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "nonsense" in ended.stderr  # it does look


def test_words_have_systemds_own_quotes(tmp_path):
    service = settings(systemd_service(tmp_path / '100% of $i"t\nü', (), "A=100% of $it"))
    assert service["ExecStart"].endswith(rf' "{tmp_path}/100%% of $$i\"t\nü"')
    # Variables are expanded in commands only.
    assert service["Environment"] == '"A=100%% of $it"'
    assert rf'"{tmp_path}/100%% of $i\"t\nü"' in service["RequiresMountsFor"]


def test_a_cron_job():
    volume = {"claim": "pipelines", "path": "/mnt/p", "sub_path": "taxi"}
    secret = {"name": "hook", "env": {"url": "HOOK"}, "path": "/secrets"}
    pods = {"image": "registry.example.com/pipelines:1.0", "service_account": "trainer"}
    kubeflow = KubeflowConfig.model_validate({**pods, "volumes": [volume], "secrets": [secret]})
    root = pathlib.Path("/mnt/p/root")
    made = yaml.safe_load(cron_job(["a_B.c", "x" * 60], kubeflow, root, "*/5 * * * *"))
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "CronJob")
    name = made["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", name)
    assert name.startswith("pipelines-a-b-c-x")
    assert made["spec"]["schedule"] == "*/5 * * * *"
    assert made["spec"]["concurrencyPolicy"] == "Forbid"
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command = container["command"]
    words = "-m estimator_pipelines schedule run --root /mnt/p/root --once"
    assert command[1:] == words.split()
    # The rest is that of all pods.
    rest = pod_spec(kubeflow, {"name": "schedules", "command": command})
    ends = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 180}
    assert pod == {**rest, **ends, "securityContext": {"fsGroup": 1000}}
