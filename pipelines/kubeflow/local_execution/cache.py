"""The cache of tasks, with the key that KFP's driver has.

It is made of the values of the input parameters, the identities of the input artifacts, the types of the
outputs, the container and its volumes: not of the content of anything.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.kubeflow.local_execution.inputs import Values


class TaskCache:
    """The tasks of a pipeline that have ended well, by key.

    Args:
      folder: Where they are kept.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    def find(self, key: str) -> Values | None:
        """Returns the outputs of the task with this key, None without one."""
        file = self._folder / f"{key}.json"
        if not file.is_file():
            return None
        return Values(**json.loads(file.read_text(encoding="utf-8")))

    def add(self, key: str, outputs: Values) -> None:
        """Keeps the outputs of a task."""
        atomic_files.write(self._folder / f"{key}.json", json.dumps(asdict(outputs)))


def cache_key(
    inputs: Values,
    component: Mapping[str, Any],
    container: Mapping[str, Any],
    pod: Mapping[str, Any],
) -> str:
    """Returns the key of a task.

    Args:
      inputs: Of the task.
      component: That it is of.
      container: Its container specification.
      pod: Its settings of Kubernetes.
    """
    outputs = component.get("outputDefinitions", {})
    key = {
        "inputParameterValues": inputs.parameters,
        "inputArtifactNames": {
            name: artifact["name"] for name, artifact in inputs.artifacts.items()
        },
        "outputArtifactsSpec": outputs.get("artifacts", {}),
        "outputParametersSpec": outputs.get("parameters", {}),
        "containerSpec": {
            "image": container["image"],
            "cmdArgs": [*container.get("command", []), *container.get("args", [])],
        },
        "pvcNames": sorted(mount["constant"] for mount in pod.get("pvcMount", [])),
    }
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
