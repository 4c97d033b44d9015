"""Kubernetes on the loopback: jobs, Services, pods and their logs. Pods are processes of this machine."""

import json
import re
import threading
import time
import uuid

from tests.pipelines.kubeflow.job_controller import JobController
from tests.pipelines.kubeflow.loopback import LoopbackServer, RefusedError

PLACE = "batch/v1 jobs"


class KubernetesServer(LoopbackServer):
    def __init__(self, folder):
        self.jobs, self.services = {}, {}  # by name; jobs have their status
        self.pods = {}  # by the name of the job
        self.kill_once = None
        self.denies = ()  # kinds that the service account may not make, such as `services`
        self.drops = 0  # requests without an answer: their connection is closed
        self.failures = 0  # requests answered with 503
        self.lingers = 0  # times that a deleted job is still read
        self.folder, self._lock, self._ends = folder, threading.RLock(), threading.Event()
        self._started = {}
        self._controller = JobController(self)
        super().__init__()
        self._operator = threading.Thread(target=self._operate, daemon=True)
        self._operator.start()

    def close(self):
        self._ends.set()
        self._operator.join(30)
        for pods in self.pods.values():
            for pod in pods:
                pod.kill()
        super().close()

    def answer(self, method, path, query, raw, headers):
        if self.drops:
            self.drops -= 1
            raise ConnectionAbortedError
        if self.failures:
            self.failures -= 1
            raise RefusedError(503, "etcd is electing a leader")
        if self.refuses is not None:
            raise self.refuses
        with self._lock:
            return self._route(method, path, query, json.loads(raw or "{}"))

    def _route(self, method, path, query, body):
        if found := re.fullmatch(r"/apis/batch/v1/namespaces/[^/]+/jobs(?:/(.+))?", path):
            return self._answer_of_jobs(method, found[1], body)
        if found := re.fullmatch(r"/api/v1/namespaces/[^/]+/services(?:/(.+))?", path):
            return self._answer_of_services(method, found[1], body)
        if found := re.fullmatch(r"/api/v1/namespaces/[^/]+/pods(?:/(.+)/log)?", path):
            if found[1]:
                pods = [pod for pods in self.pods.values() for pod in pods if pod.name == found[1]]
                lines = pods[0].log.read_text(errors="replace").splitlines()
                return "\n".join(lines[-int(query["tailLines"]) :])
            label, _, job = query["labelSelector"].partition("=")
            items = []
            if job in self.jobs and label == self._controller.pod_label:
                items = [pod.as_json() for pod in self.pods.get(job, [])]
            return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        raise RefusedError(404, f"the server could not find the requested resource {path}")

    def _answer_of_jobs(self, method, name, body):
        if method == "POST":
            return self.submit(body)
        if name not in self.jobs:
            raise RefusedError(404, f'{PLACE} "{name}" not found')
        metadata = self.jobs[name]["metadata"]
        if method == "DELETE":
            wanted = (body.get("preconditions") or {}).get("uid", metadata["uid"])
            if wanted != metadata["uid"]:
                raise RefusedError(409, f"the UID in the precondition is {wanted}")
            if body.get("propagationPolicy") not in ("Foreground", "Background"):
                raise RefusedError(422, "a Job that is deleted alone leaves its pods")
            for pod in self.pods.pop(name, []):
                pod.kill()
            metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
            return self.jobs[name] if self.lingers else self._remove(name)
        if "deletionTimestamp" in metadata:
            self.lingers -= 1
            return self.jobs[name] if self.lingers > 0 else self._remove(name)
        return self.jobs[name]

    def _remove(self, name):
        """Removes a job, and all that belongs to it."""
        job = self.jobs.pop(name)
        for key, service in list(self.services.items()):
            if job["metadata"]["uid"] in [one["uid"] for one in service["metadata"]["ownerReferences"]]:
                del self.services[key]
        return job

    def _answer_of_services(self, method, name, body):
        if "services" in self.denies:
            raise RefusedError(403, "services is forbidden")
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.services:
                raise RefusedError(409, f'services "{name}" already exists')
            self.services[name] = body
        elif name not in self.services:
            raise RefusedError(404, f'services "{name}" not found')
        return self.services.pop(name) if method == "DELETE" else self.services[name]

    def submit(self, body):
        name = body["metadata"]["name"]
        if name in self.jobs:
            raise RefusedError(409, f'{PLACE} "{name}" already exists')
        if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name):
            raise RefusedError(403, "metadata.name: DNS-1035 label")
        if fault := self._controller.fault(body):
            raise RefusedError(422, fault)
        metadata = {**body["metadata"], "uid": str(uuid.uuid4())}
        self.jobs[name] = {**body, "metadata": metadata, "status": {"conditions": []}}
        self._controller.accept(name)
        return self.jobs[name]

    def condition(self, name, kind, message, reason):
        condition = {"type": kind, "status": "True", "message": message, "reason": reason}
        self.jobs[name]["status"]["conditions"].append(condition)

    def is_too_late(self, name, deadline_secs):
        return time.monotonic() - self._started[name] > deadline_secs

    def _operate(self):
        while not self._ends.wait(0.1):
            with self._lock:
                for name in list(self.jobs):
                    self._reconcile(name)

    def _reconcile(self, name):
        controller = self._controller
        if "deletionTimestamp" in self.jobs[name]["metadata"]:
            return
        if any(one["type"] in ("Complete", "Failed") for one in self.jobs[name]["status"]["conditions"]):
            return
        if name not in self.pods:
            if not controller.can_start(name):
                return
            self.pods[name] = controller.start(name)
            self._started[name] = time.monotonic()
        if self.kill_once and (victim := self.kill_once(self.pods[name])):
            self.kill_once = None
            victim.kill()
        controller.reconcile(name)
