"""Kubernetes on the loopback, as far as the tests of a Kubeflow cluster ask it. Pods are processes here.

Every volume is this machine's own file system, and image names say nothing.
"""

import datetime
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.kubeflow_cluster.stand_in.warm_steps import WarmSteps

PROJECT = Path(__file__).parents[3]
_TYPES = {"persistentvolumeclaims", "secrets", "pods"}
_GRACE_SECS = 30


class RefusedError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Pod:
    """A pod whose container is a process.

    Attributes:
      body: Its JSON.
      log: File of its output.
      is_deleted: True once somebody has deleted it; that of a run is still listed, as Argo keeps it.
    """

    def __init__(self, body, log, steps=None):
        self.body, self.log, self._steps, self.is_deleted = body, log, steps, False
        self._process, self._phase = None, "Pending"
        body["metadata"]["creationTimestamp"] = datetime.datetime.now(datetime.timezone.utc).isoformat()

    def run(self, process, log, timeout_secs=None):
        """Runs a container as `Processes.run` of the local execution does; its umask is 0, as Argo's are."""
        self.log = log.with_name(f"{self.body['metadata']['name']}.log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = self._steps.start(process.arguments, process.environment, process.folder, self.log, 0)
        self._phase = "Running"
        try:
            code = self._process.wait(timeout_secs)
        except TimeoutError:
            self.stop()
            raise
        log.write_bytes(self.log.read_bytes())
        return code

    def start(self, arguments, environment):
        """Starts its container as a process."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as stream:
            self._process = subprocess.Popen(
                arguments,
                env=environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._phase = "Running"

    def stop(self):
        """Sends SIGTERM to its first process, and SIGKILL to all after a while."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        os.kill(process.pid, signal.SIGTERM)
        threading.Timer(_GRACE_SECS, self.kill).start()

    def kill(self):
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def as_json(self):
        if self._process is not None and (code := self._process.poll()) is not None:
            self._phase = "Failed" if code else "Succeeded"
        return {**self.body, "status": {"phase": self._phase}}


class PodsServer:
    """The server.

    Args:
      folder: Folder for the pods' output.

    Attributes:
      objects: Claims and Secrets, by type and name.
      pods: Pods by name.
      image: Image of KFP's API server, in its Deployment; None: there is no such Deployment.
      waits_for: Reason for which every pod waits, such as `ErrImagePull`; None: they start.
    """

    def __init__(self, folder):
        self.folder, self.pods, self.image, self.waits_for = folder, {}, None, None
        self._steps = None
        self.objects = {"persistentvolumeclaims": {}, "secrets": {}}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                outer._answer(self, "GET")

            def do_POST(self):
                outer._answer(self, "POST")

            def do_DELETE(self):
                outer._answer(self, "DELETE")

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        for pod in self.pods.values():
            pod.kill()
        self._server.shutdown()
        self._server.server_close()
        if self._steps is not None:
            self._steps.close()

    def write_kubeconfig(self, file):
        """Writes a configuration for clients of this server."""
        context = {"name": "here", "context": {"cluster": "here", "user": "me"}}
        clusters = [{"name": "here", "cluster": {"server": self.url}}]
        users = [{"name": "me", "user": {}}]
        fields = {"clusters": clusters, "users": users, "contexts": [context]}
        file.write_text(json.dumps({**fields, "current-context": "here"}))

    def add_step(self, body):
        """Adds a pod that will run a step."""
        if self._steps is None:
            self._steps = WarmSteps()
        return self.add(body)

    def add(self, body):
        """Adds a pod."""
        name = body["metadata"]["name"]
        self.pods[name] = Pod(body, self.folder / f"{name}.log", self._steps)
        return self.pods[name]

    def _answer(self, handler, method):
        parts = urlsplit(handler.path)
        raw = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        try:
            code, answer = 200, self._route(method, parts.path, query, json.loads(raw or "{}"))
        except RefusedError as error:
            code, answer = error.code, {"kind": "Status", "message": str(error)}
        text = answer if isinstance(answer, str) else json.dumps(answer)
        handler.send_response(code)
        kind = "text/plain" if isinstance(answer, str) else "application/json"
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    def _route(self, method, path, query, body):
        if path == "/version/":
            names = ("buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "platform")
            version = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
            return {**dict.fromkeys(names, ""), **version}
        if path == "/api/v1/nodes":
            return {"items": [{"metadata": {"name": "here"}}]}
        if path.endswith("/deployments/ml-pipeline") and self.image is not None:
            containers = [{"name": "ml-pipeline-api-server", "image": self.image}]
            template = {"spec": {"containers": containers}}
            return {"spec": {"selector": {}, "template": template}}
        match = re.fullmatch(r"/api/v1/namespaces/[^/]+/(\w+)(?:/([^/]+)(/log)?)?", path)
        if match is None or match[1] not in _TYPES:
            raise RefusedError(404, f"the server could not find the requested resource {path}")
        if match[1] == "pods":
            return self._answer_of_pods(method, match[2], match[3], query, body)
        objects = self.objects[match[1]]
        if method == "POST":
            objects[body["metadata"]["name"]] = body
            return body
        if match[2] not in objects:
            raise RefusedError(404, f'{match[1]} "{match[2]}" not found')
        return objects.pop(match[2]) if method == "DELETE" else objects[match[2]]

    def _answer_of_pods(self, method, name, log, query, body):
        if method == "POST":
            return self._start(body)
        if name is None:
            key, _, value = query["labelSelector"].partition("=")
            pods = [pod.as_json() for pod in self.pods.values()]
            chosen = [pod for pod in pods if pod["metadata"].get("labels", {}).get(key) == value]
            return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": chosen}
        if name not in self.pods:
            raise RefusedError(404, f'pods "{name}" not found')
        pod = self.pods[name]
        if log:
            return pod.log.read_text(errors="replace")
        if method == "DELETE":
            pod.is_deleted = True
            pod.stop()
        answer = pod.as_json()
        if self.waits_for is not None:
            waiting = {"waiting": {"reason": self.waits_for, "message": "there is no registry"}}
            common = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0}
            answer["status"]["containerStatuses"] = [{**common, "state": waiting}]
        return answer

    def _start(self, body):
        claims = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in body["spec"]["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        for claim in claims:
            if claim not in self.objects["persistentvolumeclaims"]:
                raise RefusedError(404, f'persistentvolumeclaim "{claim}" not found')
        pod = self.add({**body, "metadata": {**body["metadata"], "uid": str(uuid.uuid4())}})
        if self.waits_for is None:
            (container,) = body["spec"]["containers"]
            folder = str(Path(sys.executable).parent)
            path = os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))
            pod.start(container["command"], {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT)})
        return pod.as_json()
