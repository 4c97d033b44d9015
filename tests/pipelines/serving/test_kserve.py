import os
import subprocess

import pytest
import yaml

from pipelines.config.pod_spec import restricted
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.kserve import inference_service, manifest


def container_of(storage, name="taxi"):
    predictor = inference_service(name, "registry/image:1", storage)["spec"]["predictor"]
    (container,) = predictor["containers"]
    return predictor, container


def test_a_root_on_a_claim_or_a_whole_claim_is_mounted():
    predictor, container = container_of("pvc://models/taxi/root/")
    assert predictor["volumes"] == [
        {"name": "volume-1", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    ]
    assert container["volumeMounts"] == [
        {"name": "volume-1", "mountPath": "/mnt/root", "subPath": "taxi/root", "readOnly": True}
    ]
    assert container["args"][-2:] == ["--root", "/mnt/root"]
    assert "command" not in container  # that of the image
    assert "STORAGE_URI" not in [one["name"] for one in container["env"]]
    _, container = container_of("pvc://models")
    assert "subPath" not in container["volumeMounts"][0]


def test_versions_in_a_bucket_are_downloaded_by_kserve():
    predictor, container = container_of("s3://bucket/root/")
    assert {"name": "STORAGE_URI", "value": "s3://bucket/root/serving"} in container["env"]
    assert "volumes" not in predictor


def test_the_command_for_a_download_serves_what_was_downloaded(tmp_path):
    (tmp_path / "models" / "7").mkdir(parents=True)
    (tmp_path / "models" / "7" / "saved_model.pb").touch()
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    _, container = container_of("gs://bucket/root")
    (line,) = container["args"]
    line = line.replace("/mnt/models", str(tmp_path / "models"))
    for _ in range(2):  # a container may be started again
        done = subprocess.run(
            [*container["command"], line],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == (
            "-m estimator_pipelines serve --host 0.0.0.0 --port 8501 --name taxi --root root\n"
        )
        assert Root(tmp_path / "root").versions.served() == [7]


def test_probes_port_and_token_are_those_of_the_server():
    _, container = container_of("pvc://models")
    assert container["securityContext"] == restricted()
    assert container["ports"] == [{"containerPort": 8501, "protocol": "TCP"}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/v2/health/ready", "port": 8501}
    assert container["livenessProbe"]["httpGet"] == {"path": "/v2/health/live", "port": 8501}
    assert container["env"][0] == {
        "name": "ESTIMATOR_PIPELINES_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "taxi-token", "key": "token"}},
    }


@pytest.mark.parametrize(
    ("name", "service"),
    [("Taxi 2", "taxi-2"), ("2024_tips.eu", "tips-eu"), ("x" * 60, "x" * 40), ("a-" * 30, "a-" * 19 + "a")],
)
def test_the_name_is_one_of_kubernetes(name, service):
    assert inference_service(name, "image", "pvc://models")["metadata"]["name"] == service
    _, container = container_of("pvc://models", name)
    assert container["args"][container["args"].index("--name") + 1] == service


@pytest.mark.parametrize(
    ("name", "image", "storage", "message"),
    [
        ("2024", "image", "pvc://models", "'2024' does not make a Kubernetes name"),
        ("taxi", "My Image", "pvc://models", "image = 'My Image': give the name of an image"),
        *(
            ("taxi", "image", storage, "address of the root")
            for storage in ("/data/root", "models", "pvc://", "pvc://Upper/x", "s3:/x", "s3://")
        ),
    ],
)
def test_what_kubernetes_would_refuse_is_refused(name, image, storage, message):
    with pytest.raises(BadInputError, match=message):
        inference_service(name, image, storage)


def test_the_manifest_is_yaml_of_it():
    text = manifest("taxi", "image", "pvc://models/root")
    assert yaml.safe_load(text) == inference_service("taxi", "image", "pvc://models/root")
    assert text.startswith("apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\n")
