"""Starts steps in forks of a process that has done the imports already, which would take longest."""

import json
import os
import subprocess
import sys
import threading

_SERVER = """
import json, os, runpy, select, sys

import components
import pipelines.kubeflow.compile.parameters, pipelines.kubeflow.steps.component_step
import pipelines.kubeflow.steps.plan_step, pipelines.kubeflow.steps.step_code
import pipelines.kubeflow.steps.record_steps, pipelines.runs.definitions.csv_to_serving
import pipelines.runs.checks.component_checks, pipelines.steps.planning
import pipelines.report.files, pipelines.report.page, pipelines.steps.running
import tensorflow_model_analysis, tensorflow_transform

os.set_blocking(0, False)
text, is_open = b"", True
children = set()
while is_open or children:
    if is_open and select.select([0], [], [], 0.1)[0]:
        read = os.read(0, 1 << 20)
        is_open, text = bool(read), text + read
    elif not is_open:
        select.select([], [], [], 0.1)
    while b"\\n" in text:
        line, text = text.split(b"\\n", 1)
        arguments, environment, folder, log, umask = json.loads(line)
        child = os.fork()
        if child:
            children.add(child)
            print(f"started {child} 0", flush=True)
            continue
        os.setsid()
        os.chdir(folder)
        os.umask(umask)
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), stream, stream)):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[:] = arguments[3:]
        code = 1
        try:
            runpy.run_module(arguments[3], run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as error:
            code = error.code or 0
        os._exit(code)
    for child in list(children):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            children.remove(child)
            print(f"ended {child} {os.waitstatus_to_exitcode(status)}", flush=True)
"""


class WarmSteps:
    """Runs `python -P -m pipelines.kubeflow.step ...`, several at a time."""

    def __init__(self):
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            text=True,
        )
        self._changed, self._starting = threading.Condition(), threading.Lock()
        self._started, self._codes, self._is_over = [], {}, False
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, arguments, environment, folder, log, umask):
        """Starts a step; an object with `pid`, `poll` and `wait`."""
        assert list(arguments[:3]) == ["python", "-P", "-m"]
        request = [list(arguments), environment, str(folder), str(log), umask]
        with self._starting, self._changed:
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            assert self._changed.wait_for(lambda: self._started or self._is_over, 600)
            return WarmStep(self, self._started.pop())

    def code(self, pid, timeout_secs=0.0):
        """Returns the exit code of a step; None if it has not ended by then."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._codes or self._is_over, timeout_secs)
            return self._codes.get(pid, -1 if self._is_over else None)

    def close(self):
        self._server.stdin.close()
        self._server.wait()

    def _listen(self):
        for line in self._server.stdout:
            what, pid, code = line.split()
            with self._changed:
                if what == "started":
                    self._started.append(int(pid))
                else:
                    self._codes[int(pid)] = int(code)
                self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


class WarmStep:
    """A step that was started."""

    def __init__(self, steps, pid):
        self._steps, self.pid = steps, pid

    def poll(self):
        return self._steps.code(self.pid)

    def wait(self, timeout_secs=None):
        code = self._steps.code(self.pid, timeout_secs)
        if code is None:
            raise TimeoutError(f"it took longer than {timeout_secs:g} s")
        return code
