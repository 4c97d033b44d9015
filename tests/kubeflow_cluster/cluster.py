"""Kubernetes, as far as the tests ask it: pods with the image, the pods of runs, a claim, a Secret."""

import json
import time
import uuid

from pipelines.config.pod_spec import restricted

STEP = "pipelines.kubeflow.step"
VOLUME = "shared"
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")


class NoImageError(Exception):
    """The cluster can't start a pod with the image."""


class Cluster:
    """A namespace of the cluster.

    Args:
      client: `ApiClient` of the `kubernetes` package.
      target: The tests' target.
    """

    def __init__(self, client, target):
        from kubernetes.client import CoreV1Api

        self._core, self._target = CoreV1Api(client), target
        self.namespace, self.claim = target.namespace, target.claim

    def make_claim(self, name):
        """Makes a claim that several pods can mount: ReadWriteMany, or ReadWriteOnce if there is one node."""
        from kubernetes.client import ApiException

        try:
            nodes = len(self._core.list_node().items)
        except ApiException:  # the user may not list them
            nodes = None
        self._core.create_namespaced_persistent_volume_claim(
            self.namespace,
            {
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce" if nodes == 1 else "ReadWriteMany"],
                    "resources": {"requests": {"storage": "5Gi"}},
                },
            },
        )
        self.claim = name

    def delete_claim(self):
        self._core.delete_namespaced_persistent_volume_claim(self.claim, self.namespace)

    def make_secret(self, name, values):
        body = {"metadata": {"name": name}, "stringData": values}
        self._core.create_namespaced_secret(self.namespace, body)

    def delete_secret(self, name):
        self._core.delete_namespaced_secret(name, self.namespace)

    def run(self, *command, timeout_secs=900):
        """Runs a command in a pod that mounts the volume, and returns its output; it must succeed."""
        name = f"estimator-pipelines-test-{uuid.uuid4().hex[:8]}"
        container = {
            "name": "main",
            "image": self._target.image,
            "command": list(command),
            "securityContext": restricted(),
            "volumeMounts": [{"name": VOLUME, "mountPath": self._target.mount}],
        }
        spec = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [container],
            "volumes": [{"name": VOLUME, "persistentVolumeClaim": {"claimName": self.claim}}],
        }
        # Without Istio's container, which would not end.
        metadata = {"name": name, "labels": {"sidecar.istio.io/inject": "false"}}
        self._core.create_namespaced_pod(self.namespace, {"metadata": metadata, "spec": spec})
        try:
            phase = self._end_of(name, timeout_secs)
            output = self.log(name)
        finally:
            self._core.delete_namespaced_pod(name, self.namespace)
        assert phase == "Succeeded", f"{command}: {phase}\n{output}"
        return output

    def _end_of(self, name, timeout_secs):
        deadline = time.monotonic() + timeout_secs
        while True:
            status = self._core.read_namespaced_pod(name, self.namespace).status
            if status.phase in ("Succeeded", "Failed"):
                return status.phase
            for container in status.container_statuses or ():
                waiting = container.state and container.state.waiting
                if waiting and waiting.reason in _NO_IMAGE:
                    raise NoImageError(
                        f"IMAGE={self._target.image}: {waiting.reason}: {waiting.message} (an image "
                        "without a tag, or with the tag latest, is always pulled)"
                    )
            assert time.monotonic() < deadline, f"{name} has not ended: {status}"
            time.sleep(1)

    def log(self, pod):
        # The client takes a log that is JSON for an answer of Kubernetes, and returns Python's form of it.
        raw = self._core.read_namespaced_pod_log(
            pod, self.namespace, container="main", _preload_content=False
        )
        return raw.data.decode()

    def steps(self, run_id):
        """Returns the pods in which steps of a run have run, with their step, the oldest first."""
        listed = self._core.list_namespaced_pod(self.namespace, label_selector=f"pipeline/runid={run_id}")
        pods = sorted(listed.items, key=lambda pod: pod.metadata.creation_timestamp)
        return [(step, pod) for pod in pods if (step := _step(pod)) is not None]

    def delete_pod(self, pod):
        self._core.delete_namespaced_pod(pod.metadata.name, self.namespace)


def main_container(pod):
    """Returns the container that runs a step; KFP's and Argo's run next to it."""
    return next((container for container in pod.spec.containers if container.name == "main"), None)


def _step(pod):
    """Returns the step that a pod runs; None for a pod of KFP's driver."""
    container = main_container(pod)
    words = [*(container.command or ()), *(container.args or ())] if container else []
    return words[words.index(STEP) + 1] if STEP in words else None


class Volume:
    """The folder of these tests on the volume, by pods that mount it.

    Args:
      cluster: The cluster.
      path: The folder, as pods see it.
    """

    def __init__(self, cluster, path):
        self._cluster, self.path = cluster, path

    def inside(self, name):
        return f"{self.path}/{name}"

    def write(self, name, text):
        self._python("p, t = sys.argv[1:]; pathlib.Path(p).write_text(t)", name, text)

    def remove(self, name):
        self._python("pathlib.Path(sys.argv[1]).unlink()", name)

    def change_column(self, source, name, column, value):
        """Writes a CSV that has one value in a whole column."""
        program = (
            "rows = list(csv.reader(open(sys.argv[2]))); n = rows[0].index(sys.argv[3]);"
            "csv.writer(open(sys.argv[1], 'w')).writerows("
            "[rows[0]] + [r[:n] + [sys.argv[4]] + r[n + 1:] for r in rows[1:]])"
        )
        self._python(program, name, self.inside(source), column, value)

    def modes(self, name):
        """Returns the permissions and the owner of what is in a folder, by path."""
        lines = self._cluster.run("find", self.inside(name), "-printf", "%m %U %P\\n").splitlines()
        return {path: (int(mode, 8), int(user)) for mode, user, path in (x.split(" ", 2) for x in lines)}

    def records(self, root):
        """Returns the records of the runs in a root, by the id of the run on Kubeflow."""
        program = (
            "import json, pathlib, sys;"
            "print(json.dumps([json.loads(f.read_text()) for f in pathlib.Path(sys.argv[1]).glob('*.json')]))"
        )
        output = self._cluster.run("python", "-c", program, self.inside(f"{root}/runs"))
        return {record["kubeflow_run"]: record for record in json.loads(output.splitlines()[-1])}

    def make_folder(self):
        self._cluster.run("mkdir", self.path)

    def remove_folder(self):
        self._cluster.run("rm", "-rf", self.path)

    def _python(self, program, name, *arguments):
        imports = "import csv, pathlib, sys; "
        self._cluster.run("python", "-c", imports + program, self.inside(name), *arguments)
