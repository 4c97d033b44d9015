"""Work of KFP's launcher around a container: runs it, and reads its outputs."""

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.kubeflow.local_execution.containers import Container, Engine, Processes
from pipelines.kubeflow.local_execution.driver import CompiledPipeline, Values, substitute

_RUN_ID_LABEL = "metadata.labels['pipeline/runid']"


class ContainerFailedError(RuntimeError):
    """A container has failed.

    `exit_code`: Exit code of the container; 1 if it was ended.
    `log`: File with its output; None if it was not started.
    """

    def __init__(self, message: str, exit_code: int = 1, log: Path | None = None):
        super().__init__(message)
        self.exit_code = exit_code
        self.log = log


@dataclass(frozen=True)
class Launcher:
    """Runs the containers of one run."""

    pipeline: CompiledPipeline
    run_id: str
    folder: Path  # Folder for the containers' files
    logs: Path  # Folder for the containers' output
    engine: Engine  # Engine that makes a process of a container
    processes: Processes
    mounts: tuple[Path, ...] = ()  # Paths of this machine that containers see

    def launch(self, name: str, component: Mapping[str, Any], inputs: Values) -> Values:
        """Runs the container of a task, and returns its outputs."""
        folder = self.folder / f"{name}-{uuid.uuid4().hex[:8]}"
        declared = component.get("outputDefinitions", {}).get("parameters", {})
        files = {key: folder / "kfp" / "outputs" / key for key in declared}
        outputs = {}
        try:
            (folder / "kfp" / "outputs").mkdir(parents=True)
            self._run(name, component, inputs, files, folder)
            for key, file in files.items():
                if not file.is_file():
                    raise ContainerFailedError(f"{name}: it has not written its output parameter {key!r}")
                text = file.read_text(encoding="utf-8")
                is_text = declared[key]["parameterType"] == "STRING"
                outputs[key] = text if is_text else json.loads(text)
            return outputs
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(
        self, name: str, component: Mapping[str, Any], inputs: Values, files: Mapping[str, Path], folder: Path
    ) -> None:
        container, pod = self.pipeline.container(component), self.pipeline.pod(component)
        arguments = [*container.get("command", []), *container.get("args", [])]
        output_files = {key: str(file) for key, file in files.items()}
        process = self.engine(
            Container(
                container["image"],
                tuple(substitute(arguments, inputs, output_files)),
                self._environment(container, pod),
                folder,
                self.mounts,
            )
        )
        log = self.logs / f"{name}.log"
        timeout_secs = pod.get("activeDeadlineSeconds")
        try:
            code = self.processes.run(process, log, timeout_secs and float(timeout_secs))
        except InterruptedError:  # the run is over: the task is not tried again
            raise
        except (OSError, TimeoutError) as error:
            raise ContainerFailedError(f"{name}: {error}", log=log) from error
        if code != 0:
            last_line = ""
            for line in log.read_text(encoding="utf-8", errors="replace").split("\n"):
                is_of_engine = process.added_lines and process.added_lines.fullmatch(line.strip())
                if line.strip() and not is_of_engine:
                    last_line = line
            raise ContainerFailedError(last_line or f"{name}: exit code {code}", code, log)

    def _environment(self, container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
        environment = {item["name"]: item["value"] for item in container.get("env", [])}
        for field in pod.get("fieldPathAsEnv", []):
            if field["fieldPath"] == _RUN_ID_LABEL:
                environment[field["name"]] = self.run_id
        for secret in pod.get("secretAsEnv", []):
            for item in secret["keyToEnv"]:
                variable = item["envVar"]
                if variable not in os.environ:
                    raise ContainerFailedError(
                        "kubeflow.secrets: this machine has no Kubernetes Secrets. Set the environment "
                        f"variable {variable} to the value of the key {item['secretKey']!r}."
                    )
                environment[variable] = os.environ[variable]
        return environment
