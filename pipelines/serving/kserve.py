"""The manifest of a KServe `InferenceService` that runs `serve` in the project's image.

Source: KServe's documentation of custom predictors, of storage on a claim, and of the variable STORAGE_URI.
"""

import re
from typing import Any

import yaml
from pydantic import ValidationError

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.load import explain
from pipelines.config.pod_spec import pod_spec
from pipelines.errors import BadInputError, shown

PORT = 8501
_MODELS = "/mnt/models"  # KServe's storage initializer puts a download here
_ROOT = "/mnt/root"
_CLAIM = re.compile(r"pvc://([a-z0-9.-]+)((?:/[^/]+)*)/?")
_MAX_NAME = 40  # KServe makes longer names of it, which have 63 letters at most


def inference_service(name: str, image: str, storage: str) -> dict[str, Any]:
    """Returns the manifest.

    A root on a claim is mounted, so pushes and rollbacks are served as on one machine. From any other
    storage, KServe copies the versions when a pod starts.

    `storage`: root of the runs: `pvc://CLAIM/FOLDER`, or an address that KServe reads: `s3://BUCKET/ROOT`.
    """
    service = _service_name(name)
    server = ["serve", "--host", "0.0.0.0", "--port", str(PORT), "--name", service]
    token = {"name": f"{service}-token", "env": {"token": "ESTIMATOR_PIPELINES_TOKEN"}}
    settings: dict[str, Any] = {"image": image, "secrets": [token]}
    container: dict[str, Any] = {"name": "kserve-container"}
    if claim := _CLAIM.fullmatch(storage):
        container["args"] = [*server, "--root", _ROOT]
        volume = {"claim": claim[1], "path": _ROOT, "sub_path": claim[2].strip("/")}
        settings["volumes"] = [volume]
    elif re.fullmatch(r"[a-z0-9]+://[^/\s]+\S*", storage) and not storage.startswith("pvc:"):
        # The versions are downloaded, not the whole root, which `serve` wants around them.
        container["command"] = ["sh", "-c"]
        run = ["python", "-m", "estimator_pipelines", *server, "--root", "root"]
        container["args"] = [f"mkdir -p root && ln -sfn {_MODELS} root/serving && exec {' '.join(run)}"]
        settings["env"] = {"STORAGE_URI": f"{storage.rstrip('/')}/serving"}
    else:
        raise BadInputError(
            "The storage is the address of the root: pvc://CLAIM/FOLDER, or one that KServe reads, such as "
            f"s3://BUCKET/ROOT. Received: {shown(repr(storage))}"
        )
    container["ports"] = [{"containerPort": PORT, "protocol": "TCP"}]
    container["readinessProbe"] = _probe("/v2/health/ready", periodSeconds=5)
    container["livenessProbe"] = _probe(
        "/v2/health/live", initialDelaySeconds=60, periodSeconds=10, failureThreshold=6
    )
    container["resources"] = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    try:
        pods = KubeflowConfig.model_validate(settings)
    except ValidationError as error:
        raise BadInputError(explain(error, None, KubeflowConfig)) from error
    predictor = {"minReplicas": 1, **pod_spec(pods, container, read_only_volumes=True)}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": service},
        "spec": {"predictor": predictor},
    }


def manifest(name: str, image: str, storage: str) -> str:
    """Returns the manifest as YAML; see `inference_service`."""
    text: str = yaml.safe_dump(inference_service(name, image, storage), sort_keys=False)
    return text


def _probe(path: str, **times: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": PORT}, "timeoutSeconds": 5, **times}


def _service_name(name: str) -> str:
    """Returns a name as Kubernetes wants it: lower case letters, digits and hyphens, a letter first."""
    service = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    service = service.lstrip("-0123456789")[:_MAX_NAME].rstrip("-")
    if not service:
        raise BadInputError(
            f"{shown(repr(name))} does not make a Kubernetes name, which needs a letter from a to z. Give "
            "--name."
        )
    return service
