"""A Flink cluster on this machine: one JobManager and some task managers, each in its own process.

    scripts/flink/setup.sh .venv/bin/python .flink
    python scripts/flink/cluster.py .flink

It runs until Ctrl-C. It is for experiments and tests, not for production.
"""

import argparse
import contextlib
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

START_SECS = 180

_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"

# Settings that Flink needs on Java 17 (`env.java.opts.all` of its configuration).
_EXPORTS = (
    "java.base/sun.net.util",
    "java.rmi/sun.rmi.registry",
    "jdk.compiler/com.sun.tools.javac.api",
    "java.security.jgss/sun.security.krb5",
)
_OPENS = (
    "java.base/java.lang",
    "java.base/java.net",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "java.base/java.lang.reflect",
    "java.base/java.text",
    "java.base/java.time",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
)

# Each step of a pipeline has its own network buffers and sorting memory, and Transform has many steps.
_TASK_MANAGER_SETTINGS = {
    "taskmanager.cpu.cores": "1.0",
    "taskmanager.numberOfTaskSlots": "1",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.task.heap.size": "512m",
    "taskmanager.memory.task.off-heap.size": "64m",
    "taskmanager.memory.managed.size": "768m",
    "taskmanager.memory.network.min": "768m",
    "taskmanager.memory.network.max": "768m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "128m",
    "taskmanager.memory.jvm-overhead.max": "128m",
}

_LOGGING = """
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1} - %m%n
"""


class FlinkCluster:
    """Processes of Flink; a context that ends them."""

    def __init__(self, flink: Path, folder: Path, port: int = 0):
        self._flink = flink
        self._folder = folder
        self._port = port or free_port()
        self._processes: list[subprocess.Popen] = []
        self._task_managers: list[subprocess.Popen] = []

    @property
    def master(self) -> str:
        """The address for `beam.flink.master`."""
        return f"localhost:{self._port}"

    def __enter__(self) -> "FlinkCluster":
        (self._folder / "conf").mkdir(parents=True, exist_ok=True)
        settings = {
            "jobmanager.rpc.address": "localhost",
            "jobmanager.rpc.port": str(free_port()),
            "rest.address": "localhost",
            "rest.port": str(self._port),
            "heartbeat.interval": "2000",
            "heartbeat.timeout": "20000",
            # Beam gives its batch jobs no restart strategy, so Flink restarts none without these lines.
            # If a machine is lost, each region of a job counts as an attempt unless all restart together.
            "jobmanager.execution.failover-strategy": "full",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "5 s",
            # Beam's jars are next to Flink's here, so workers stay alive between the steps of a job.
            "classloader.resolve-order": "parent-first",
        }
        text = "".join(f"{key}: {value}\n" for key, value in settings.items())
        (self._folder / "conf" / "config.yaml").write_text(text)
        (self._folder / "conf" / "log4j.properties").write_text(_LOGGING)
        self._start("jobmanager", _JOB_MANAGER, "512m", ["--executionMode", "cluster"])
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def add_task_manager(self) -> subprocess.Popen:
        """Starts a task manager with one slot and returns its process."""
        options = [f"-D{key}={value}" for key, value in _TASK_MANAGER_SETTINGS.items()]
        name = f"taskmanager-{len(self._processes)}"
        options.append(f"-Dtaskmanager.resource-id={name}")
        self._task_managers.append(self._start(name, _TASK_MANAGER, "768m", options))
        return self._task_managers[-1]

    def kill_task_manager(self) -> None:
        """Kills the oldest task manager, like the loss of a machine."""
        process = self._task_managers.pop(0)
        process.kill()
        process.wait()

    def wait_for_slots(self, slots: int, secs: float = START_SECS) -> None:
        """Waits until the cluster has a number of task slots."""
        end = time.monotonic() + secs
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                if self.read("overview")["slots-total"] >= slots:
                    return
            time.sleep(0.3)
        raise TimeoutError(f"Flink has not {slots} slots after {secs:g} s; logs: {self._folder}")

    def read(self, path: str) -> dict:
        """Returns the reply of the JobManager's REST interface at a path, such as `overview`."""
        with urllib.request.urlopen(f"http://{self.master}/{path}", timeout=10) as answer:
            return json.load(answer)

    def _start(self, name: str, program: str, heap: str, options: list[str]) -> subprocess.Popen:
        beam = [
            jar
            for jar in sorted((self._flink / "job-server").glob("*.jar"))
            if not jar.name.startswith(("flink-", "slf4j-"))
        ]
        command = [
            "java",
            *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTS),
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS),
            f"-Dlog4j.configurationFile=file:{self._folder}/conf/log4j.properties",
            f"-Xmx{heap}",
            "-XX:MaxDirectMemorySize=1100m",
            "-cp",
            ":".join([f"{self._flink}/lib/*", *map(str, beam)]),
            program,
            "--configDir",
            f"{self._folder}/conf",
            *options,
        ]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self._processes.append(process)
        return process


def free_port() -> int:
    """Returns a port that is free."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Runs a cluster until a signal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flink", type=Path, help="the folder that setup.sh has filled")
    parser.add_argument("--port", type=int, default=8081, help="port of the REST interface")
    parser.add_argument("--task-managers", type=int, default=2)
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    with (
        tempfile.TemporaryDirectory(prefix="flink-") as folder,
        FlinkCluster(options.flink.resolve(), Path(folder), options.port) as cluster,
    ):
        for _ in range(options.task_managers):
            cluster.add_task_manager()
        cluster.wait_for_slots(options.task_managers)
        print(f"Flink runs at {cluster.master}; logs in {folder}; stop with Ctrl-C", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
