"""Pods that this project describes for Kubernetes: tasks of a training, scheduled runs, model servers."""

from typing import Any

from pipelines.config.kubeflow import KubeflowConfig, TolerationConfig

_Fields = dict[str, Any]


def pod_spec(settings: KubeflowConfig, container: _Fields, read_only_volumes: bool = False) -> _Fields:
    """Returns the specification of a pod with one container."""
    env: list[_Fields] = [{"name": name, "value": value} for name, value in settings.env.items()]
    volumes: list[_Fields] = []
    mounts: list[_Fields] = []
    read_only = {"readOnly": True} if read_only_volumes else {}
    for number, volume in enumerate(settings.volumes, 1):
        name = f"volume-{number}"
        claim = {"claimName": volume.claim, **read_only}
        volumes.append({"name": name, "persistentVolumeClaim": claim})
        sub_path = {"subPath": volume.sub_path} if volume.sub_path else {}
        mounts.append({"name": name, "mountPath": volume.path, **sub_path, **read_only})
    for number, secret in enumerate(settings.secrets, 1):
        for key, variable in secret.env.items():
            reference = {"name": secret.name, "key": key}
            env.append({"name": variable, "valueFrom": {"secretKeyRef": reference}})
        if secret.path is not None:
            name = f"secret-{number}"
            volumes.append({"name": name, "secret": {"secretName": secret.name}})
            mounts.append({"name": name, "mountPath": secret.path, "readOnly": True})
    filled = {**container, "image": settings.image, "env": env, "volumeMounts": mounts}
    pod = {
        "containers": [{**_without_empty(filled), "securityContext": restricted()}],
        "volumes": volumes,
        "nodeSelector": settings.node_selector,
        "tolerations": [_toleration(toleration) for toleration in settings.tolerations],
        "serviceAccountName": settings.service_account,
    }
    return _without_empty(pod)


def restricted() -> _Fields:
    """Returns the security context of a container that a namespace with the profile *restricted* admits.

    Source: Kubernetes' Pod Security Standards.
    """
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _toleration(toleration: TolerationConfig) -> _Fields:
    fields = toleration.model_dump(exclude_none=True)
    if "seconds" in fields:  # may be 0
        fields["tolerationSeconds"] = fields.pop("seconds")
    return fields


def _without_empty(fields: _Fields) -> _Fields:
    return {key: value for key, value in fields.items() if value}
