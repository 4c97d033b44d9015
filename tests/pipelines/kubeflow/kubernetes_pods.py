"""Pods of `kubernetes_server`, which are processes of this machine."""

import os
import signal
import socket
import subprocess


class Pod:
    def __init__(self, name, kind, arguments, environment, log):
        self.name, self.kind, self.log = name, kind, log  # its kind is `Chief`, `Worker` or `PS`
        self.is_evicted = False  # its node was emptied
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

    def evict(self):
        """Asks it to end, as Kubernetes does when it empties a node."""
        self.is_evicted = True
        self.process.terminate()

    def as_json(self):
        state = {}
        if self.code is not None:
            reason = "Completed" if self.code == 0 else "Error"
            state = {"terminated": {"exitCode": self.code, "reason": reason}}
        container = {
            "name": "tensorflow", "state": state, "image": "image:1", "imageID": "", "ready": not state,
            "restartCount": self.restarts,
        }  # fmt: skip
        status = {"phase": self.phase, "containerStatuses": [container]}
        return {"metadata": {"name": self.name}, "status": status}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
