"""Finds the SavedModel in the directory of a Model artifact, in each layout that Trainers write.

Source: TFX's `path_utils`. Unlike it, this module takes the newest of several exports by exporters or
`export_saved_model`, and reports when there is no model.
"""

import os

from tfx.dsl.io import fileio
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")
_EXPORT = "export"


def eval_model_path(model_uri: str) -> str | None:
    """Returns the directory of a Model artifact's evaluation model: `Format-TFMA` or its newest export."""
    return exported_model(path_utils.eval_model_dir(model_uri))


def serving_model_path(model: Artifact) -> str:
    return find_serving_model(
        path_utils.serving_model_dir(model.uri, path_utils.is_old_model_artifact(model))
    )


def find_serving_model(directory: str) -> str:
    """Returns the directory of the SavedModel to serve.

    It is the first of these that exists: `directory` itself; the newest `<timestamp>` in it, as
    `export_saved_model` names it; the newest `export/<exporter>/<timestamp>`, if an Estimator
    trained in `directory`.
    """
    model = exported_model(directory)
    if model is not None:
        return model
    exports = os.path.join(directory, _EXPORT)
    names = fileio.listdir(exports) if fileio.isdir(exports) else []
    models = {
        name.rstrip("/"): path
        for name in names
        if (path := exported_model(os.path.join(exports, name.rstrip("/")))) is not None
    }
    if not models:
        raise FileNotFoundError(
            f"There is no SavedModel in {directory}, nor in a <timestamp> or "
            f"{_EXPORT}/<exporter>/<timestamp> below it."
        )
    if len(models) > 1:
        raise ValueError(
            f"Which model is to be served? Several exporters left one in {exports}: "
            f"{', '.join(sorted(models))}. Copy the right one to {directory}."
        )
    return next(iter(models.values()))


def exported_model(directory: str) -> str | None:
    """Returns `directory` if it holds a SavedModel, or else its newest `<timestamp>` that does, if any."""
    if _holds_saved_model(directory):
        return directory
    names = fileio.listdir(directory) if fileio.isdir(directory) else []
    timestamps = [name.rstrip("/") for name in names]
    exports = [
        name
        for name in timestamps
        if name.isascii() and name.isdigit() and _holds_saved_model(os.path.join(directory, name))
    ]
    return os.path.join(directory, max(exports, key=int)) if exports else None


def _holds_saved_model(directory: str) -> bool:
    return any(fileio.exists(os.path.join(directory, name)) for name in _SAVED_MODELS)
