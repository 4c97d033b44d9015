"""Registers the pushed versions of a root in an MLflow model registry."""

import json
import math
import os
import platform
import re
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.config.data_url import ExpandedUrl
from pipelines.config.pipeline_config import WITHOUT_EFFECT_ON_RESULT
from pipelines.config.toml import flat_settings
from pipelines.root import Root
from pipelines.root.records import RunRecord

_TAG = "estimator-pipelines.version"
_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # MLflow's 7 would keep a run waiting for minutes
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_MAX_PARAMS = 100  # in a request
_MAX_KEY_CHARS, _MAX_PARAM_CHARS = 250, 6_000


def register_versions(root: Root, record: RunRecord) -> str | None:
    """Registers the versions that the registry lacks, and returns the reason if it cannot.

    They are the live version, and others of runs with `[pusher] mlflow`: what is not registered now is
    registered after a later run.
    """
    address = record.section("pusher").get("mlflow")
    if not address or record.status not in ("pushed", "unchanged"):
        return None
    url = version = None
    try:
        url = ExpandedUrl(address)
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        import mlflow

        client = mlflow.MlflowClient(url.value, url.value)
        is_name = f"name = '{record.name}'"
        if not client.search_registered_models(is_name):
            client.create_registered_model(record.name)
        registered = {model.tags.get(_TAG) for model in client.search_model_versions(is_name)}
        pushed = {run.version: run for run in root.records.read_all() if run.version}
        served = root.versions.served()
        for version in served:
            run = pushed.get(str(version))
            is_wanted = run and (version == served[-1] or run.section("pusher").get("mlflow"))
            if run and is_wanted and str(version) not in registered:
                _register(client, record.name, root, run, str(version))
    except Exception as error:  # it must not end a run whose version is live
        reason = url.hide_values(f"{type(error).__name__}: {error}") if url else str(error)
        live = version or root.versions.serving()
        return (
            f"version {live} is not registered in MLflow ({address}): {reason}. It is registered after the "
            "next run"
        )
    return None


def _register(client: Any, name: str, root: Root, run: RunRecord, version: str) -> None:
    """Registers a version, last of all: a registration that was interrupted begins again in the same run."""
    from mlflow.entities import Metric, Param

    tags = {_TAG: version, "estimator-pipelines.run": run.run_id}
    experiment = client.get_experiment_by_name(name)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
    started = client.search_runs([experiment_id], f"tags.`{_TAG}` = '{version}'", max_results=1)
    mlflow_run = started[0] if started else client.create_run(experiment_id, run_name=run.run_id, tags=tags)
    run_id = mlflow_run.info.run_id
    time_ms = int(datetime.fromisoformat(run.finished or run.started).timestamp() * 1000)
    values = {**run.metrics, **{f"test_{key}": value for key, value in run.test_metrics.items()}}
    metrics = [
        Metric(_key(key), value, time_ms, 0)
        for key, value in values.items()
        if value is not None and math.isfinite(value)
    ]
    sections = {key: value for key, value in run.config.items() if key not in WITHOUT_EFFECT_ON_RESULT}
    settings = {_key(key): value for key, value in flat_settings(sections).items() if value is not None}
    params = [Param(key, str(value)[:_MAX_PARAM_CHARS]) for key, value in settings.items()]
    client.log_batch(run_id, metrics)
    for start in range(0, len(params), _MAX_PARAMS):
        client.log_batch(run_id, params=params[start : start + _MAX_PARAMS])
    if run.report and Path(run.report).is_file():
        client.log_artifact(run_id, run.report)
    saved_model = root.serving / version
    client.log_artifacts(run_id, str(saved_model), "model/saved_model")
    with tempfile.TemporaryDirectory() as folder:
        _write_model_files(Path(folder), saved_model, run_id)
        client.log_artifacts(run_id, folder, "model")
    client.create_model_version(name, f"{mlflow_run.info.artifact_uri}/model", run_id, tags=tags)
    client.set_terminated(run_id)


def _key(name: str) -> str:
    """Returns the name of a metric or a parameter in the characters that MLflow accepts."""
    return re.sub(r"[^\w. -]", "_", name)[:_MAX_KEY_CHARS]


def _write_model_files(folder: Path, saved_model: Path, run_id: str) -> None:
    """Writes `MLmodel`, for the TensorFlow flavor of a SavedModel, and the files of its environment."""
    import numpy as np
    import tensorflow as tf
    from mlflow import __version__, pyfunc
    from mlflow.models import Model, ModelSignature
    from mlflow.types import Schema, TensorSpec

    from pipelines.serving.saved_model import SERVING_ROWS, read_signatures

    signatures = read_signatures(saved_model)
    signature = signatures.get(SERVING_ROWS) or next(iter(signatures.values()))
    schemas = [
        Schema(
            [
                TensorSpec(
                    np.dtype(str if tensor.dtype == "string" else tensor.dtype.as_numpy_dtype),
                    tuple(-1 if size is None else size for size in tensor.shape or (None,)),
                    name,
                )
                for name, tensor in tensors.items()
            ]
        )
        for tensors in (signature.inputs, signature.outputs)
    ]
    model = Model("model", run_id, signature=ModelSignature(*schemas))
    model.add_flavor(
        "tensorflow",
        code=None,
        model_type="tf1-estimator",  # MLflow's name for a SavedModel with signatures
        saved_model_dir="saved_model",
        meta_graph_tags=["serve"],
        signature_def_key=signature.name,
    )
    pyfunc.add_to_model(model, loader_module="mlflow.tensorflow", conda_env="conda.yaml")
    model.save(str(folder / "MLmodel"))
    requirements = [f"mlflow=={__version__}", f"tensorflow=={tf.__version__}"]
    (folder / "requirements.txt").write_text("\n".join([*requirements, ""]))
    packages = [f"python={platform.python_version()}", "pip", {"pip": requirements}]
    environment = {"name": "mlflow-env", "channels": ["conda-forge"], "dependencies": packages}
    (folder / "conda.yaml").write_text(json.dumps(environment, indent=1))  # JSON is YAML
