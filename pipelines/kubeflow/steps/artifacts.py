"""Conversion between artifacts of TFX and of Kubeflow.

An artifact's properties are stored as one JSON text: Kubeflow would turn the integers of its metadata into
floating point numbers. The types come from the component, never from the server: the open-source one does
not send them.
"""

import importlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

METADATA_KEY = "tfx_artifact"


def new_artifact(type_path: str, path: str, metadata: dict[str, Any] | None = None) -> "Artifact":
    """Returns an artifact.

    Args:
      type_path: Import path of the artifact's type.
      path: Folder of the content, as this process sees it.
      metadata: Metadata that Kubeflow stores for it. Default: the artifact is new.
    """
    from google.protobuf import json_format

    module, _, name = type_path.rpartition(".")
    artifact = getattr(importlib.import_module(module), name)()
    text = (metadata or {}).get(METADATA_KEY)
    if text is not None:
        proto = artifact.mlmd_artifact
        json_format.ParseDict(json.loads(text), proto)
        artifact.set_mlmd_artifact(proto)
    artifact.uri = path
    return artifact


def metadata_of(artifact: "Artifact") -> dict[str, str]:
    """Returns the metadata of an artifact for Kubeflow to store."""
    from google.protobuf import json_format

    proto = json_format.MessageToDict(artifact.mlmd_artifact)
    kept = {key: proto[key] for key in ("properties", "customProperties") if key in proto}
    return {METADATA_KEY: json.dumps(kept, sort_keys=True)}


def output_metadata(
    executor_input: dict[str, Any], outputs: dict[str, list["Artifact"]]
) -> dict[str, Any]:
    """Returns the content of `output_metadata.json`: KFP's `ExecutorOutput`.

    Args:
      executor_input: KFP's `ExecutorInput`.
      outputs: Output artifacts of the component by key, one each.
    """
    declared = executor_input.get("outputs", {}).get("artifacts", {})
    artifacts = {}
    for key, (artifact,) in outputs.items():
        (given,) = declared[key]["artifacts"]
        artifacts[key] = {
            "artifacts": [
                {
                    "name": given.get("name", key),
                    "uri": given["uri"],
                    "type": given.get("type", {}),
                    "metadata": {**given.get("metadata", {}), **metadata_of(artifact)},
                }
            ]
        }
    return {"artifacts": artifacts}


def input_metadata(executor_input: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the metadata that Kubeflow stores for an input artifact."""
    (given,) = executor_input["inputs"]["artifacts"][key]["artifacts"]
    metadata: dict[str, Any] = given.get("metadata", {})
    return metadata
