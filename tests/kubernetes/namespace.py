"""A namespace of the cluster that admits restricted pods only, with a volume that several pods write."""

import json
import pathlib
import time

from pipelines.config.pod_spec import restricted
from scripts.kubernetes.cluster import NODE

IMAGE = "localhost/estimator-pipelines-kubernetes:test"
TOOLS = "localhost/kubernetes-tools:test"
MOUNT = "/mnt/pipelines"
CLAIM = "folder-0"  # as `--local` names the claim of the folder with the root
ENFORCE = "pod-security.kubernetes.io/enforce"
USER = 1000  # of the image


class Namespace:
    """A namespace with the claim `folder-0`.

    Args:
      cluster: Running cluster.
      name: Name of the namespace, and of its volume.

    Attributes:
      volume: Folder of this machine that is the volume.
    """

    def __init__(self, cluster, name):
        self.name = name
        self.volume = cluster.state / "volumes" / name
        self._cluster = cluster
        self.volume.mkdir()
        capacity = {"storage": "10Gi"}
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {ENFORCE: "restricted"}},
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": capacity,
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "",
                    "claimRef": {"namespace": name, "name": CLAIM},
                    "local": {"path": str(self.volume)},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": CLAIM, "namespace": name},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "",
                    "volumeName": name,
                    "resources": {"requests": capacity},
                },
            },
        )

        self.wait_for(
            lambda: self.kubectl("get", "serviceaccount", "default", check=False),
            "the namespace has no service account",
        )

    def kubectl(self, *arguments, **options):
        return self._cluster.kubectl("--namespace", self.name, *arguments, **options)

    def read(self, *arguments):
        """Returns the JSON of `kubectl get` in the namespace."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def apply(self, *objects):
        """Creates or changes objects in the namespace."""
        for manifest in objects:
            manifest["metadata"]["namespace"] = self.name
        self._cluster.apply(*objects)

    def start(self, name, *command, **changes):
        """Starts a pod with the image; its root file system can't be written to, but for /tmp."""
        container = {
            "name": "main",
            "image": IMAGE,
            "command": list(command),
            "securityContext": {**restricted(), "readOnlyRootFilesystem": True},
            "volumeMounts": [
                {"name": "shared", "mountPath": MOUNT},
                {"name": "scratch", "mountPath": "/tmp"},
            ],
        }
        spec = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            # The volume's files get the group of the image's user.
            "securityContext": {"fsGroup": USER},
            "containers": [container],
            "volumes": [
                {"name": "shared", "persistentVolumeClaim": {"claimName": CLAIM}},
                {"name": "scratch", "emptyDir": {}},
            ],
        }
        self.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, **changes}}
        )

    def ended(self, name, timeout_secs=1800):
        """Waits until a pod has ended; returns its exit code and its output."""

        def exit_code():
            (status,) = self.read("pod", name)["status"].get("containerStatuses") or ({},)
            return status.get("state", {}).get("terminated", {}).get("exitCode")

        code = self.wait_for(exit_code, f"the pod {name} has not ended", timeout_secs, is_found)
        return code, self.kubectl("logs", name, "--container=main")

    def run(self, name, *command, **changes):
        """Runs a pod, and returns its output; it must succeed."""
        self.start(name, *command, **changes)
        code, output = self.ended(name)
        print(output)
        assert code == 0, output
        return output

    def wait_for(self, find, otherwise, timeout_secs=300, is_right=bool):
        """Returns the result of a function as soon as it is right."""
        deadline = time.monotonic() + timeout_secs
        while not is_right(result := find()):
            if time.monotonic() > deadline:
                events = self.kubectl("get", "events", "--sort-by=.lastTimestamp")
                raise AssertionError(f"{otherwise} after {timeout_secs} s\n{events}")
            time.sleep(1)
        return result

    def write(self, name, text):
        """Writes a file onto the volume."""
        (self.volume / name).write_text(text)

    def pods(self, label):
        """Returns the pods with a label."""
        return self.read("pods", f"--selector={label}")["items"]


def is_found(value):
    return value is not None


def result_of(output):
    """Returns the JSON object that `run` prints: the log of a pod mixes its two streams."""
    (line,) = (line for line in output.splitlines() if line.startswith('{"run_id"'))
    return json.loads(line)


def inside(path):
    """Returns where the pods see a file of the volume."""
    return str(pathlib.PurePosixPath(MOUNT) / path)
