from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pod_spec import pod_spec, restricted

SETTINGS = {
    "image": "registry.example.com/pipelines:1.0",
    "env": {"TZ": "UTC", "EMPTY": ""},
    "secrets": [
        {"name": "login", "env": {"user": "USER_NAME", "password": "WORD"}},
        {"name": "certificate", "path": "/etc/certificate"},
    ],
    "volumes": [
        {"claim": "pipelines", "path": "/mnt/p"},
        {"claim": "pipelines", "path": "/data", "sub_path": "taxi/data"},
    ],
    "node_selector": {"disk": "ssd"},
    "tolerations": [
        {"key": "gpu", "operator": "Exists", "seconds": 0},
        {"key": "team", "value": "a", "effect": "NoSchedule"},
    ],
    "service_account": "runner",
}


def variable(name, secret, key):
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def test_a_pod_has_all_settings():
    pod = pod_spec(KubeflowConfig.model_validate(SETTINGS), {"name": "main", "command": ["run"]})
    (container,) = pod.pop("containers")
    assert container == {
        "name": "main",
        "command": ["run"],
        "image": "registry.example.com/pipelines:1.0",
        "env": [
            {"name": "TZ", "value": "UTC"},
            {"name": "EMPTY", "value": ""},
            variable("USER_NAME", "login", "user"),
            variable("WORD", "login", "password"),
        ],
        "volumeMounts": [
            {"name": "volume-1", "mountPath": "/mnt/p"},
            {"name": "volume-2", "mountPath": "/data", "subPath": "taxi/data"},
            {"name": "secret-2", "mountPath": "/etc/certificate", "readOnly": True},
        ],
        "securityContext": restricted(),
    }
    claim = {"persistentVolumeClaim": {"claimName": "pipelines"}}
    secret = {"name": "secret-2", "secret": {"secretName": "certificate"}}
    assert pod == {
        "volumes": [{"name": "volume-1", **claim}, {"name": "volume-2", **claim}, secret],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "tolerationSeconds": 0},
            {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
        ],
        "serviceAccountName": "runner",
    }


def test_a_pod_without_settings_has_a_container_only():
    pod = pod_spec(KubeflowConfig(image="image:1"), {"name": "main"})
    container = {"name": "main", "image": "image:1", "securityContext": restricted()}
    assert pod == {"containers": [container]}


def test_volumes_can_be_read_only():
    pod = pod_spec(KubeflowConfig.model_validate(SETTINGS), {"name": "main"}, True)
    claims = [volume.get("persistentVolumeClaim") for volume in pod["volumes"][:2]]
    assert [claim["readOnly"] for claim in claims] == [True, True]
    assert all(mount["readOnly"] for mount in pod["containers"][0]["volumeMounts"])


def test_it_has_what_the_restricted_profile_asks_of_a_container_each_for_itself():
    # https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    found = restricted()
    assert found["allowPrivilegeEscalation"] is False
    assert found["runAsNonRoot"] is True
    assert found["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    assert "privileged" not in found
    found["capabilities"]["drop"].clear()
    assert restricted()["capabilities"] == {"drop": ["ALL"]}
