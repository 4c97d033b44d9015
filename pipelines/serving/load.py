"""Loads a pushed version of a root."""

import os
from pathlib import Path

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.model import Model


def load(root: str | os.PathLike[str], version: int | None = None) -> Model:
    """Loads the model of a root, to predict rows in Python.

    It needs TensorFlow and NumPy only.

    Args:
        root: Folder of a pipeline's runs.
        version: Version, also one that a rollback has withdrawn. Default: the one that serves.

    Raises:
        BadInputError: There is no such version.

    Example:
          model = pipelines.load("pipeline_root")
          model.predict([{"fare": 12.5, "company": "Prairie Cab"}])
    """
    return Model(version_folder(Root(Path(root)), version))


def version_folder(root: Root, version: int | None = None) -> Path:
    """Returns the folder of a version.

    `version`: version, served or withdrawn. Default: the one that serves.
    """
    served, withdrawn = root.versions.served(), root.versions.withdrawn()
    if version is None and served:
        return root.serving / str(served[-1])
    if version in served:
        return root.serving / str(version)
    if version in withdrawn:
        return root.withdrawn / str(version)
    if not served and not withdrawn:
        raise BadInputError(
            f"There is no model in {root}: no run has pushed one there. Give the root of `run`, or run first."
        )
    listed = [", ".join(map(str, found)) or "none" for found in (served, withdrawn)]
    wanted = "that serves" if version is None else str(version)
    raise BadInputError(
        f"There is no version {wanted} in {root}. Served: {listed[0]}; withdrawn: {listed[1]}."
    )
