"""Kubernetes on the loopback: TFJobs, pods and their logs, and an operator that runs replicas as processes.

It follows training-operator 1.9: TF_CONFIG goes into the container `tensorflow`; the chief's success is the
job's; a task that fails ends the job, unless its exit code is from 128 on and it is started again;
`cleanPodPolicy` says what happens to those that still run; `activeDeadlineSeconds`.
"""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from urllib.parse import parse_qs, urlsplit

JOBS = "/apis/kubeflow.org/v1/namespaces/"


class RefusedError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Pod:
    def __init__(self, name, kind, arguments, environment, log):
        self.name, self.kind, self.log = name, kind, log
        self._arguments, self._environment = arguments, environment
        self.restarts = -1
        self.start()

    def start(self):
        self.restarts += 1
        with self.log.open("ab") as stream:
            self.process = subprocess.Popen(
                self._arguments,
                env=self._environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def code(self):
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    @property
    def phase(self):
        return {None: "Running", 0: "Succeeded"}.get(self.code, "Failed")

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class KubernetesServer:
    """The server.

    Attributes:
      jobs: By name, as they were submitted, with their status.
      pods: By the name of the job.
      drops: How many requests get no answer: their connection is closed.
      failures: How many requests are answered with 503.
      lingers: How often a job that is deleted is still read.
    """

    def __init__(self, folder):
        self.jobs, self.pods, self.refuses = {}, {}, None
        self.kill_once = None
        self.drops, self.failures, self.lingers = 0, 0, 0
        self._folder, self._lock, self._ends = folder, threading.RLock(), threading.Event()
        self._started, self._restarts = {}, {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def answer(self, method):
                outer.answer(self, method)

            def do_GET(self):
                self.answer("GET")

            def do_POST(self):
                self.answer("POST")

            def do_DELETE(self):
                self.answer("DELETE")

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._server.serve_forever, self._operate)
        ]
        for thread in self._threads:
            thread.start()

    def close(self):
        self._ends.set()
        self._threads[1].join(30)
        for pods in self.pods.values():
            for pod in pods:
                pod.kill()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler, method):
        parts = urlsplit(handler.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        raw = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if self.drops:
            self.drops -= 1
            handler.close_connection = True
            return
        try:
            if self.failures:
                self.failures -= 1
                raise RefusedError(503, "etcd is electing a leader")
            if self.refuses is not None:
                raise self.refuses
            with self._lock:
                code, answer = 200, self._route(method, parts.path, query, json.loads(raw or "{}"))
        except RefusedError as error:
            code, answer = error.code, {"kind": "Status", "message": str(error)}
        content = answer if isinstance(answer, str) else json.dumps(answer)
        handler.send_response(code)
        kind = "text/plain" if isinstance(answer, str) else "application/json"
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content.encode())))
        handler.end_headers()
        handler.wfile.write(content.encode())

    def _route(self, method, path, query, body):
        if found := re.fullmatch(rf"{JOBS}([^/]+)/tfjobs(?:/(.+))?", path):
            if method == "POST":
                return self._submit(body)
            if found[2] not in self.jobs:
                raise RefusedError(404, f'tfjobs.kubeflow.org "{found[2]}" not found')
            metadata = self.jobs[found[2]]["metadata"]
            if method == "DELETE":
                wanted = (body.get("preconditions") or {}).get("uid", metadata["uid"])
                if wanted != metadata["uid"]:
                    raise RefusedError(409, f"the UID in the precondition is {wanted}")
                for pod in self.pods.pop(found[2], []):
                    pod.kill()
                metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
                return self.jobs[found[2]] if self.lingers else self.jobs.pop(found[2])
            if "deletionTimestamp" in metadata:
                self.lingers -= 1
                return self.jobs[found[2]] if self.lingers > 0 else self.jobs.pop(found[2])
            return self.jobs[found[2]]
        if found := re.fullmatch(r"/api/v1/namespaces/[^/]+/pods(?:/(.+)/log)?", path):
            if found[1]:
                pods = [pod for pods in self.pods.values() for pod in pods if pod.name == found[1]]
                lines = pods[0].log.read_text(errors="replace").splitlines()
                return "\n".join(lines[-int(query["tailLines"]) :])
            job = query["labelSelector"].partition("=")[2]
            items = [
                {"metadata": {"name": pod.name}, "status": {"phase": pod.phase}}
                for pod in self.pods.get(job, [])
            ]
            return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        raise RefusedError(404, path)

    def _submit(self, body):
        name = body["metadata"]["name"]
        if name in self.jobs:
            raise RefusedError(409, f'tfjobs.kubeflow.org "{name}" already exists')
        if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name):
            raise RefusedError(403, "metadata.name: DNS-1035 label")
        for kind, replica in body["spec"]["tfReplicaSpecs"].items():
            containers = replica["template"]["spec"]["containers"]
            if not any(one["name"] == "tensorflow" and one["image"] for one in containers):
                raise RefusedError(403, f"{kind}: no container with name tensorflow and an image")
        metadata = {**body["metadata"], "uid": str(uuid.uuid4())}
        self.jobs[name] = {**body, "metadata": metadata, "status": {"conditions": []}}
        self._condition(name, "Created", "")
        return self.jobs[name]

    def _condition(self, name, kind, message):
        conditions = self.jobs[name]["status"]["conditions"]
        for one in conditions:
            if one["type"] == "Running" and kind != "Created":
                one["status"] = "False"
        conditions[:] = [one for one in conditions if one["type"] != kind]
        conditions.append({"type": kind, "status": "True", "message": message})

    def _operate(self):
        while not self._ends.wait(0.1):
            with self._lock:
                for name in list(self.jobs):
                    self._reconcile(name)

    def _start(self, name):
        replicas = self.jobs[name]["spec"]["tfReplicaSpecs"]
        cluster = {
            kind.lower(): [f"127.0.0.1:{_free_port()}" for _ in range(replica["replicas"])]
            for kind, replica in replicas.items()
        }
        self.pods[name] = []
        for kind, replica in replicas.items():
            (container,) = replica["template"]["spec"]["containers"]
            given = {item["name"]: item["value"] for item in container["env"]}
            for index in range(replica["replicas"]):
                task = {"type": kind.lower(), "index": index}
                config = json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})
                pod = f"{name}-{kind.lower()}-{index}"
                self.pods[name].append(
                    Pod(
                        pod,
                        kind,
                        [sys.executable, *container["command"][1:]],
                        {**os.environ, **given, "TF_CONFIG": config},
                        self._folder / f"{pod}.log",
                    )
                )
        self._started[name] = time.monotonic()
        self._condition(name, "Running", "")

    def _reconcile(self, name):
        job = self.jobs[name]
        if "deletionTimestamp" in job["metadata"]:
            return
        done = {one["type"] for one in job["status"]["conditions"]} & {"Succeeded", "Failed"}
        if done:
            return
        if name not in self.pods:
            self._start(name)
        policy = job["spec"]["runPolicy"]
        if time.monotonic() - self._started[name] > policy["activeDeadlineSeconds"]:
            self._finish(name, "Failed", "active longer than specified deadline")
            return
        if self.kill_once and (victim := self.kill_once(self.pods[name])):
            self.kill_once = None
            victim.kill()
        for pod in self.pods[name]:
            if pod.phase != "Failed":
                continue
            retried = self._restarts.setdefault(name, 0) < policy["backoffLimit"]
            if pod.code >= 128 and retried:
                self._restarts[name] += 1
                pod.start()
            else:
                self._finish(name, "Failed", f"{pod.name} has failed with {pod.code}")
                return
        if all(pod.phase == "Succeeded" for pod in self.pods[name] if pod.kind == "Chief"):
            self._finish(name, "Succeeded", "")

    def _finish(self, name, kind, message):
        self._condition(name, kind, message)
        if self.jobs[name]["spec"]["runPolicy"]["cleanPodPolicy"] == "Running":
            for pod in self.pods[name]:
                if pod.phase == "Running":
                    pod.kill()
                    self.pods[name] = [one for one in self.pods[name] if one is not pod]


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
