import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pod_security import restricted
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.scheduling.monitoring.manifests import cron_job, systemd_unit


def settings(unit):
    return dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))


def test_a_unit_restarts_the_scheduler_and_lets_it_stop_its_run(tmp_path):
    unit = systemd_unit(
        Root(tmp_path), tmp_path, (), ("--metrics-port", "9200"), {"PYTHONPATH": "/opt/code"}
    )
    found = settings(unit)
    assert shlex.split(found["ExecStart"]) == [
        *(sys.executable, "-m", "estimator_pipelines", "schedule", "run"),
        *("--root", str(tmp_path), "--metrics-port", "9200"),
    ]
    assert found["Environment"] == "PYTHONPATH=/opt/code"
    # The scheduler stops its run itself; a run without memory is not the end of the scheduler.
    assert (found["KillMode"], found["OOMPolicy"], found["Restart"]) == (
        "mixed",
        "continue",
        "always",
    )
    assert int(found["TimeoutStopSec"]) > 120


def test_a_unit_has_secrets_and_waits_for_its_volumes(make_schedule, tmp_path):
    schedules = [
        make_schedule(config="/mnt/code/trips.toml", notify={"webhook_env": "TRIPS_HOOK"}),
        make_schedule(name="other", config="/mnt/code/other.toml"),
    ]
    unit = systemd_unit(Root(tmp_path / "taxi root"), tmp_path, schedules)
    found = settings(unit)
    assert shlex.split(found["RequiresMountsFor"]) == [
        "/mnt/code",
        str(tmp_path),
        str(tmp_path / "taxi root"),
    ]
    assert found["EnvironmentFile"] == "-/etc/pipelines/taxi_root.env"  # `-`: it may be missing
    assert "# Secrets, as far as they are used: TRIPS_HOOK." in unit


def test_systemd_takes_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    root = tmp_path / '100% of $it\'s "root"'
    root.mkdir()
    file = tmp_path / "pipelines.service"
    file.write_text(systemd_unit(Root(root), root, (), (), {"A": "b c"}))
    words = [program, "verify", "--man=no", str(file)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    said = [line for line in ended.stderr.splitlines() if "pipelines.service" in line]
    assert (ended.returncode, said) == (0, [])
    file.write_text(file.read_text().replace("KillMode=mixed", "KillMode=nonsense"))
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "nonsense" in ended.stderr  # it does look


def test_words_have_systemds_own_quotes(tmp_path):
    unit = systemd_unit(Root(tmp_path / "100% of $it"), tmp_path)
    assert f'"{tmp_path}/100%% of $$it"' in unit
    with pytest.raises(BadInputError, match="line breaks"):
        systemd_unit(Root(tmp_path / "a\nb"), tmp_path)


def test_a_cron_job(make_schedule):
    kubeflow = KubeflowConfig.model_validate(
        {
            "image": "registry.example.com/pipelines:1.0",
            "volumes": [{"claim": "pipelines", "path": "/mnt/p", "sub_path": "taxi"}],
            "secrets": [{"name": "hook", "env": {"url": "HOOK"}, "path": "/secrets"}],
            "env": {"TZ": "UTC"},
            "node_selector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "seconds": 60}],
            "service_account": "trainer",
        }
    )
    schedules = [make_schedule(name="a_B.c"), make_schedule(name="x" * 60)]
    made = yaml.safe_load(cron_job(schedules, kubeflow, "/mnt/p/root", None, "*/5 * * * *"))
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "CronJob")
    name = made["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", name)
    assert name.startswith("pipelines-a-b-c-x")
    assert made["spec"]["schedule"] == "*/5 * * * *"
    assert made["spec"]["concurrencyPolicy"] == "Forbid"
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"][-3:] == ["--once", "--root", "/mnt/p/root"]
    assert container["image"] == "registry.example.com/pipelines:1.0"
    assert container["securityContext"] == restricted()
    assert container["env"] == [
        {"name": "TZ", "value": "UTC"},
        {"name": "HOOK", "valueFrom": {"secretKeyRef": {"name": "hook", "key": "url"}}},
    ]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/mnt/p", "/secrets"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}]
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["serviceAccountName"] == "trainer"
    assert pod["restartPolicy"] == "Never"


def test_a_cron_job_needs_an_image(make_schedule):
    with pytest.raises(BadInputError, match="--image"):
        cron_job([make_schedule()], KubeflowConfig(), "/root", None, "*/5 * * * *")
    made = yaml.safe_load(
        cron_job([make_schedule()], KubeflowConfig(), "/root", "own:2", "0 * * * *")
    )
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "own:2"
    assert "volumes" not in pod
