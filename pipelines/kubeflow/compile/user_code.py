"""The user's Python files and data on this machine, and where the steps see them."""

import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.tfx_pipeline import PipelineSource
from pipelines.errors import BadInputError

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

_PATHS = ("module_file", "input_base", "artifact_uri", "schema_file")
"""Execution properties that name files."""


@contextmanager
def loaded(source: PipelineSource) -> Iterator["Pipeline"]:
    """Yields the pipeline of a definition, with relative paths resolved against the definition's folder.

    Until it is left, that folder is the working directory: a container may start in any folder.
    """
    import components  # noqa: F401  - before any TFX import: it makes TFDV importable
    from pipelines.steps.definition import load_pipeline

    file, working_dir = Path(source.file).resolve(), os.getcwd()
    if file.parent.is_dir():
        os.chdir(file.parent)
    try:
        yield load_pipeline(file, source.function, source.arguments)
    finally:
        os.chdir(working_dir)


def seen_path(settings: KubeflowConfig, key: str, file: str) -> str:
    """Returns the path by which the steps see a Python file of this machine."""
    path = Path(file).absolute()
    if settings.code is not None:
        return str(PurePosixPath(settings.code) / path.name)
    if not is_seen(settings, str(path)):
        raise BadInputError(
            f"{key} = {file!r}: no step can read {path}. Put the folder {path.parent} into the image or onto "
            'a volume, and set kubeflow.code = "FOLDER" to its path there.'
        )
    return str(path)


def is_seen(settings: KubeflowConfig, path: str) -> bool:
    """Returns True if a path is in the root, on a volume, or with the code."""
    folders = [settings.root, settings.code, *(volume.path for volume in settings.volumes)]
    if settings.backend == "vertex":
        folders.append("/gcs")
    plain = PurePosixPath(posixpath.normpath(path))
    return any(folder and plain.is_relative_to(folder) for folder in folders)


def check_paths(settings: KubeflowConfig, pipeline: "Pipeline", folder: Path) -> None:
    """Checks that the steps see the files that a definition names."""
    for component, name, path in configured_paths(pipeline):
        moves_along = settings.code is not None and Path(path).is_relative_to(folder)
        if not moves_along and not is_seen(settings, path):
            volumes = ", ".join(volume.path for volume in settings.volumes) or "none"
            raise BadInputError(
                f"{component}: {name} = {path!r}: no step can read it. Put it onto a volume (volumes: "
                f"{volumes}) or next to the definition, and give its path there, such as with --arg."
            )


def configured_paths(pipeline: "Pipeline") -> Iterator[tuple[str, str, str]]:
    """Yields the local paths in the settings of a pipeline's components: id, name of the setting, path."""
    for component in pipeline.components:
        properties: Mapping[str, Any] = component.exec_properties
        for name in _PATHS:
            value = properties.get(name)
            if isinstance(value, str) and value and "://" not in value:
                yield component.id, name, str(Path(value).absolute())
        destination = properties.get("push_destination")
        if destination:
            from google.protobuf import json_format
            from tfx.proto import pusher_pb2

            push = destination
            if isinstance(destination, str):
                push = json_format.Parse(destination, pusher_pb2.PushDestination())
            base = push.filesystem.base_directory
            if base and "://" not in base:
                yield component.id, "base_directory", str(Path(base).absolute())
