"""KFP's server on the loopback that executes runs: the compiled pipeline's containers are processes here.

It plays what docs/kubeflow.md says of Kubeflow: its cache; *Retry*, after which what has succeeded stays and
the exit handler does not run again; *Terminate*, which ends the pods with SIGTERM; a step with retries whose
pod was deleted is started again, and one whose container failed is not. A recurring run starts one run.
"""

import re
import threading
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.kubeflow.local_execution.containers import Processes, as_subprocess
from pipelines.kubeflow.local_execution.driver import CompiledPipeline, TaskCache
from pipelines.kubeflow.local_execution.launcher import ContainerFailedError, Launcher
from pipelines.kubeflow.local_execution.workflow import Workflow
from tests.pipelines.kubeflow.kfp_server import KfpServer, RefusedError

RECURRING_SECS = 1.0  # until the first run of a recurring run, for any trigger
_LAUNCHER = ["/kfp-launcher/launch", "--"]


class ExecutingServer(KfpServer):
    """The server.

    Args:
      cluster: `PodsServer` that the pods are added to.
      folder: Folder for the cache and the containers' files.

    Attributes:
      version: Version that it reports, or None.
      faults: Faults that it has: `no environment`, `no cache`, `no kept outputs`, `kills`.
    """

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.version, self.faults = cluster, folder, "2.17.0", set()
        self.executions, self.texts = {}, {}
        super().__init__()

    def close(self):
        super().close()
        for execution in self.executions.values():
            execution.terminate()

    def _route(self, method, path, query, body):
        if path == "healthz":
            version = {"apiServerTagName": self.version} if self.version else {}
            return {**super()._route(method, path, query, body), **version}
        if path == "runs" and method == "GET":
            return {"runs": [self._described(run) for run in self.runs], "total_size": len(self.runs)}
        if path == "runs":
            run = super()._route(method, path, query, body)
            self._start(run)
            return run
        if match := re.fullmatch(r"runs/([^/:]+)(:retry|:terminate)?", path):
            if match[1] not in self.runs:
                raise RefusedError(404, f"there is no run {match[1]}")
            if not match[2]:
                return self._described(match[1])
            execution = self.executions[match[1]]
            if match[2] == ":terminate":
                execution.terminate()
            elif match[2] == ":retry":
                if execution.state == "RUNNING":
                    raise RefusedError(400, "only a run that has ended can be retried")
                execution.start()
            return {}
        answer = super()._route(method, path, query, body)
        if path.startswith("pipelines/upload"):
            self.texts[list(self.versions)[-1]] = body
        if path == "recurringruns" and method == "POST":
            threading.Timer(RECURRING_SECS, self.recur, [answer["recurring_run_id"]]).start()
        return answer

    def _described(self, run_id):
        execution = self.executions.get(run_id)  # None for a moment after the run was made
        return {**self.runs[run_id], "state": execution.state if execution else "PENDING"}

    def recur(self, recurring_run_id):
        """Starts a run, as the clock of a recurring run does."""
        recurring = self.recurring.get(recurring_run_id)
        if recurring is None or recurring["status"] != "ENABLED":
            return
        names = ("pipeline_version_reference", "runtime_config", "experiment_id", "display_name")
        body = {name: recurring[name] for name in names if name in recurring}
        self._route("POST", "runs", {}, {**body, "recurring_run_id": recurring_run_id})

    def _start(self, run):
        version = run["pipeline_version_reference"]["pipeline_version_id"]
        pipeline = CompiledPipeline.parse(self.texts[version])
        parameters = (run.get("runtime_config") or {}).get("parameters") or {}
        launcher = PodLauncher(
            pipeline,
            run["run_id"],
            self.folder / "containers" / run["run_id"],
            self.folder / "logs" / run["run_id"],
            as_subprocess,
            Processes(),
            server=self,
        )
        self.executions[run["run_id"]] = Execution(
            pipeline, launcher, self.folder / "cache", pipeline.parameters(parameters), self.faults
        )


class Execution:
    """A run: its workflow, in a thread.

    Attributes:
      state: State of the run in KFP's words.
    """

    def __init__(self, pipeline, launcher, cache, parameters, faults):
        self._pipeline, self._launcher, self._cache = pipeline, launcher, cache
        self._parameters, self._faults = parameters, faults
        self._kept, self._workflow, self.state = {}, None, "PENDING"
        self.start()

    def start(self):
        """Runs what has not succeeded yet."""
        kept = {} if "no kept outputs" in self._faults else self._kept
        cache = TaskCache(self._cache / (uuid.uuid4().hex if "no cache" in self._faults else "all"))
        self._workflow = KubeflowWorkflow(self._pipeline, self._launcher, cache, Silent(), 2, kept=kept)
        self.state = "RUNNING"
        threading.Thread(target=self._run, daemon=True).start()

    def terminate(self):
        """Ends the steps that run, and lets no further ones start but the exit handler."""
        self._workflow.is_terminated = True
        for pod in self._launcher.pods():
            pod.kill() if "kills" in self._faults else pod.stop()

    def _run(self):
        state = "FAILED"
        try:
            self._workflow.run(self._parameters)
            state = "SUCCEEDED"
        except ContainerFailedError:
            pass
        finally:
            self.state = state


class Silent:
    """Observes tasks, and says nothing."""

    def task_started(self, name):
        pass

    def task_finished(self, name, cached, elapsed_secs):
        pass

    def task_failed(self, name, elapsed_secs):
        pass


@dataclass
class KubeflowWorkflow(Workflow):
    """A workflow that can be terminated and retried.

    Attributes:
      kept: Outputs of the tasks that have succeeded, by name.
      is_terminated: True if tasks must not start any more.
    """

    kept: dict[str, Any] = field(default_factory=dict)
    is_terminated: bool = False

    def _run_task(self, name, task, inputs):
        if name in self.kept:
            return self.kept[name]
        retries = int(task.get("retryPolicy", {}).get("maxRetryCount", 0))
        while True:
            if self.is_terminated and name != "end":
                raise ContainerFailedError(f"{name}: the run was terminated")
            try:
                self.kept[name] = super()._run_task(name, task, inputs)
            except ContainerFailedError:
                if retries == 0 or not self.launcher.newest_is_deleted(name):
                    raise
                retries -= 1
            else:
                return self.kept[name]


@dataclass(frozen=True)
class PodLauncher(Launcher):
    """Runs containers as pods of the server's Kubernetes.

    Attributes:
      server: The KFP server.
    """

    server: Any = None

    def launch(self, name, component, inputs):
        """Runs the container of a task in a separate pod."""
        settings = self.pipeline.pod(component)
        body = {
            "metadata": {
                "name": f"{self.pipeline.name}-{name}-{uuid.uuid4().hex[:8]}",
                "labels": {"pipeline/runid": self.run_id, "task": name},
            },
            "spec": self._pod(self.pipeline.container(component), settings),
        }
        pod = self.server.cluster.add_step(body)
        return Launcher.launch(replace(self, processes=pod), name, component, inputs)

    def pods(self, name=None):
        """Returns the run's pods, or those of a task, the oldest first."""
        wanted = {"pipeline/runid": self.run_id, **({"task": name} if name else {})}
        return [
            pod
            for pod in list(self.server.cluster.pods.values())
            if wanted.items() <= pod.body["metadata"].get("labels", {}).items()
        ]

    def newest_is_deleted(self, name):
        """Returns True if somebody has deleted the newest pod of a task."""
        return self.pods(name)[-1].is_deleted

    def _environment(self, container, pod):
        variables = {item["name"]: item["value"] for item in container.get("env", [])}
        variables |= {item["name"]: self.run_id for item in pod.get("fieldPathAsEnv", [])}
        secrets = self.server.cluster.objects["secrets"]
        for secret in pod.get("secretAsEnv", []):
            values = secrets[_constant(secret, "secretName")]["stringData"]
            variables |= {item["envVar"]: values[item["secretKey"]] for item in secret["keyToEnv"]}
        return variables

    def _pod(self, container, settings):
        environment = [dict(item) for item in container.get("env", [])]
        for item in settings.get("fieldPathAsEnv", []):
            reference = {"fieldRef": {"fieldPath": item["fieldPath"]}}
            environment.append({"name": item["name"], "valueFrom": reference})
        for secret in settings.get("secretAsEnv", []):
            for item in secret["keyToEnv"]:
                reference = {"name": _constant(secret, "secretName"), "key": item["secretKey"]}
                environment.append({"name": item["envVar"], "valueFrom": {"secretKeyRef": reference}})
        asked = container.get("resources", {})
        volumes, mounts = [], []
        for mount in settings.get("pvcMount", []):
            claim = _constant(mount, "pvcName")
            volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
            mounts.append({"name": claim, "mountPath": mount["mountPath"]})
        main = {
            "name": "main",
            "image": container["image"],
            "command": _LAUNCHER,
            "args": [*container.get("command", []), *container.get("args", [])],
            "env": [] if "no environment" in self.server.faults else environment,
            "volumeMounts": mounts,
            "resources": {
                kind: {
                    name: value
                    for name, key in (("cpu", f"resourceCpu{end}"), ("memory", f"resourceMemory{end}"))
                    if (value := asked.get(key))
                }
                for kind, end in (("limits", "Limit"), ("requests", "Request"))
            },
        }
        timeout_secs = settings.get("activeDeadlineSeconds")
        return {
            "containers": [main, {"name": "wait", "image": "argoexec"}],
            "volumes": volumes,
            "nodeSelector": settings.get("nodeSelector", {}).get("labels", {}),
            "tolerations": settings.get("tolerations", []),
            **({"activeDeadlineSeconds": int(timeout_secs)} if timeout_secs else {}),
        }


def _constant(settings, name):
    """Returns a value of KFP's Kubernetes settings, in either notation."""
    parameter = settings.get(f"{name}Parameter", {}).get("runtimeValue", {})
    return parameter.get("constant") or settings.get(name) or settings["constant"]
