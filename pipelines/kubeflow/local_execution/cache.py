"""Cache of tasks, with the key of KFP's driver.

The key covers the values of the inputs, the types of the outputs, the container and its volumes.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.errors import DamagedFileError
from pipelines.kubeflow.local_execution.inputs import Values


class TaskCache:
    """Outputs of a pipeline's tasks that succeeded, by key."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find(self, key: str) -> Values | None:
        """Returns the outputs of the task with this key; None without one, or if they are damaged."""
        try:
            return atomic_files.read_model(self._folder / f"{key}.json", Values)
        except (FileNotFoundError, DamagedFileError):
            return None

    def add(self, key: str, outputs: Values) -> None:
        """Stores the outputs of a task."""
        atomic_files.write(self._folder / f"{key}.json", json.dumps(outputs))


def cache_key(
    inputs: Values,
    component: Mapping[str, Any],
    container: Mapping[str, Any],
    pod: Mapping[str, Any],
) -> str:
    """Returns the key of a task."""
    key = {
        "inputParameterValues": inputs,
        "outputParametersSpec": component.get("outputDefinitions", {}).get("parameters", {}),
        "containerSpec": {
            "image": container["image"],
            "cmdArgs": [*container.get("command", []), *container.get("args", [])],
        },
        "pvcNames": sorted(mount["constant"] for mount in pod.get("pvcMount", [])),
    }
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
