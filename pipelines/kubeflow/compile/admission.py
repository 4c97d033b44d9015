"""Checks that a pipeline works and is accepted by Kubeflow, Argo and Kubernetes, before it is compiled."""

import posixpath
import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import Any

from components.nearest import nearest_first
from pipelines.beam.options import direct_options, engine_name, given_options
from pipelines.config.beam import BeamConfig
from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import AnyConfig
from pipelines.config.toml import flat_settings
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD
from pipelines.kubeflow.compile.task_settings import NEVER_CACHED

COMPONENTS = (
    "CsvExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "Transform",
    "Tuner",
    "Trainer",
    "Evaluator",
    "ServingCheck",
    "Pusher",
)
SCHEMES = {"kubeflow": ("minio://", "s3://", "gs://"), "vertex": ("gs://",)}

MAX_NAME = 57
"""Longest name: the workflow is named NAME-xxxxx, and the value of a label has at most 63 characters."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SEEN = ("data.path", "module.file", "schema.path")


def check_config(config: AnyConfig) -> None:
    """Checks a configuration, without reading the data or the definition."""
    settings = config.kubeflow
    if settings.image is None:
        raise BadInputError(
            "kubeflow.image is missing: give the image that runs the steps, which `make image` builds, "
            'such as "registry.example.com/pipelines:1.0".'
        )
    _check_pipeline_root(settings)
    _check_root(settings)
    if settings.backend == "vertex":
        _check_vertex(settings)
    if isinstance(config, PipelineConfig):
        _check_training_job(config)
        _check_paths(config)
    elif settings.training_job is not None or settings.parameters:
        key = "parameters" if settings.parameters else "training_job"
        raise BadInputError(
            f"kubeflow.{key} is for pipelines from a CSV. Leave it out: the parameters of a pipeline of your "
            "own are its RuntimeParameters, and its Trainer trains in its own pod."
        )
    _check_mounts(settings)
    check_texts(config)


def check_texts(config: AnyConfig) -> None:
    """Checks that Kubeflow finds no placeholder in a configuration."""
    for key, text in _texts(config.model_dump(mode="json")):
        if "{{" in text:
            raise BadInputError(
                f"{key} = {text!r}: Kubeflow would read {{{{ as a placeholder. Write it "
                "without two opening braces in a row."
            )


def check_names(settings: KubeflowConfig, name: str, components: Collection[str]) -> str:
    """Returns the name of the pipeline on Kubeflow."""
    key, name = ("kubeflow.name", settings.name) if settings.name else ("name", name)
    if not _LABEL.fullmatch(name) or len(name) > MAX_NAME:
        proposal = re.sub(r"[^a-z0-9]+", "-", name.lower())[:MAX_NAME].strip("-") or "pipeline"
        raise BadInputError(
            f"{key} = {name!r}: Kubernetes takes lower-case letters, digits and '-' (RFC 1123), at most "
            f'{MAX_NAME} characters since Argo adds six. Set kubeflow.name = "{proposal}".'
        )
    if taken := [component for component in components if component in (PLAN, RECORD, END)]:
        raise BadInputError(
            f"{taken[0]}: on Kubeflow, every pipeline has a step with this id. Give the component another "
            "id, with with_id."
        )
    steps = (PLAN, *components, RECORD, END)
    for step in settings.components:
        if step not in steps:
            nearest = nearest_first(step, steps)
            raise BadInputError(
                f"kubeflow.components.{step}: there is no such step. Did you mean {nearest[0]}? Steps: "
                f"{', '.join(nearest)}."
            )
    for step in NEVER_CACHED:
        if step in settings.components and settings.components[step].cache:
            raise BadInputError(
                f"kubeflow.components.{step}.cache = true: this step runs in every run. Leave it out."
            )
    return name


def check_specification(text: str) -> None:
    """Checks a compiled pipeline as the server does when it is uploaded."""
    import yaml

    specification = next(yaml.safe_load_all(text))
    version = specification.get("schemaVersion")
    if version != "2.1.0":
        raise BadInputError(
            f"The server only takes the schema version 2.1.0. Received: schemaVersion={version!r}; kfp "
            "has changed."
        )
    components = specification["components"]
    dags = [specification["root"], *(item for item in components.values() if "dag" in item)]
    for dag in dags:
        for name in dag["dag"]["tasks"]:
            if not _LABEL.fullmatch(name) or len(name) > 63:
                raise BadInputError(
                    f"The task {name!r} is not a valid name for Kubernetes (RFC 1123): lower-case letters, "
                    "digits and '-', at most 63 characters."
                )
    parameters = specification["root"].get("inputDefinitions", {}).get("parameters", {})
    for name, parameter in parameters.items():
        if "defaultValue" not in parameter and not parameter.get("isOptional"):
            raise BadInputError(
                f"The parameter {name!r} has no default: the server refuses a run that does not set it."
            )


def _check_pipeline_root(settings: KubeflowConfig) -> None:
    schemes = SCHEMES[settings.backend]
    root = settings.pipeline_root
    if root is None and settings.backend == "kubeflow":
        return
    if root is None:
        raise BadInputError(
            "kubeflow.pipeline_root is missing: give the place where Vertex keeps the files of its runs, "
            f'such as "{schemes[0]}BUCKET/FOLDER".'
        )
    scheme = next((item for item in schemes if root.startswith(item)), None)
    if scheme is None:
        raise BadInputError(
            f"kubeflow.pipeline_root = {root!r}: the backend {settings.backend!r} takes "
            f"{', '.join(f'{item}BUCKET/FOLDER' for item in schemes)}. Files that outlive a run go to "
            "kubeflow.root instead, which is a folder."
        )
    bucket = root.removeprefix(scheme).partition("/")[0]
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{2,}", bucket):
        raise BadInputError(
            f"kubeflow.pipeline_root = {root!r}: {bucket!r} is not the name of a bucket: it needs at least "
            "three lower-case letters, digits, '.', '_' or '-', and begins with a letter or a digit."
        )


def _check_root(settings: KubeflowConfig) -> None:
    example = "/gcs/BUCKET/FOLDER" if settings.backend == "vertex" else "/mnt/pipelines/NAME"
    if settings.root is None:
        raise BadInputError(
            "kubeflow.root is missing: give the folder for served versions and run records, which every step "
            f'must see, such as "{example}".'
        )
    if settings.backend == "vertex" and not settings.root.startswith("/gcs/"):
        raise BadInputError(
            f"kubeflow.root = {settings.root!r}: on Vertex the folder that every step sees is "
            "/gcs/BUCKET/FOLDER."
        )
    if settings.backend == "kubeflow" and not any(
        _is_below(settings.root, volume.path) for volume in settings.volumes
    ):
        paths = ", ".join(volume.path for volume in settings.volumes) or "none"
        raise BadInputError(
            f"kubeflow.root = {settings.root!r} is not on a volume (volumes: {paths}): the next step would "
            'not see the files of the previous one. Add [[kubeflow.volumes]] with claim = "CLAIM" and path = '
            f'"{PurePosixPath(settings.root).parent}".'
        )


def _check_mounts(settings: KubeflowConfig) -> None:
    """Checks that no path has two mounts, which Kubernetes refuses."""
    keys_by_path: dict[PurePosixPath, str] = {}
    mounts = [
        *((f"volumes.{number}", volume.path) for number, volume in enumerate(settings.volumes)),
        *((f"secrets.{number}", secret.path) for number, secret in enumerate(settings.secrets)),
    ]
    for key, path in mounts:
        if path is None:
            continue
        earlier = keys_by_path.setdefault(PurePosixPath(path), key)
        if earlier != key:
            raise BadInputError(
                f"kubeflow.{key}.path = {path!r}: kubeflow.{earlier} is mounted there already. Give each "
                "its own folder."
            )


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yields each string of a configuration with its key: values, items of lists, and keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            inner = f"{key}.{name}" if key else name
            yield inner, name
            yield from _texts(item, inner)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{key}.{number}")


def _check_vertex(settings: KubeflowConfig) -> None:
    if settings.service_account is not None:
        raise BadInputError(
            "kubeflow.service_account: only submit uses it, and it does not support Vertex. Leave it "
            f'out, and write PipelineJob.submit("{settings.service_account}") in Google\'s client.'
        )
    for key in ("volumes", "secrets", "node_selector", "tolerations"):
        value = getattr(settings, key)
        if value:
            raise BadInputError(
                f"kubeflow.{key}: Vertex has no pods to set it for; leave it out, or set "
                'kubeflow.backend = "kubeflow".'
            )
    for name, step in settings.components.items():
        if step.node_selector or step.timeout:
            key = "node_selector" if step.node_selector else "timeout"
            raise BadInputError(
                f"kubeflow.components.{name}.{key}: Vertex has no pods to set it for; leave it out."
            )


def _check_training_job(config: PipelineConfig) -> None:
    if config.kubeflow.training_job is None:
        return
    if config.kubeflow.backend == "vertex":
        raise BadInputError("kubeflow.training_job: Vertex has no Kubernetes Jobs; leave it out.")
    if not config.trainer.workers:
        raise BadInputError(
            "kubeflow.training_job: the training has no workers to run; set trainer.workers and "
            "trainer.ps, or leave it out."
        )
    step = config.kubeflow.components.get("Trainer")
    if step is not None and step.accelerator is not None:
        raise BadInputError(
            "kubeflow.components.Trainer.accelerator: with kubeflow.training_job the pods of the job "
            "train, and the Trainer's step waits for them. Set kubeflow.training_job.accelerator and "
            "kubeflow.training_job.accelerators instead."
        )
    if config.trainer.evaluator:
        raise BadInputError(
            "trainer.evaluator = true: the job of kubeflow.training_job ends with its chief, and has no "
            "evaluator. Leave it out: the Trainer's step evaluates and exports when the job is done."
        )


def _check_paths(config: PipelineConfig) -> None:
    """Checks that the steps see the files that the configuration names."""
    settings = config.kubeflow
    folders = [str(settings.root), *(volume.path for volume in settings.volumes)]
    if settings.backend == "vertex":
        folders.append("/gcs")
    values = flat_settings(config.model_dump(mode="json"))
    for key in _SEEN:
        path = values.get(key)
        if path is None:
            continue
        if "://" in path:
            raise BadInputError(f"{key} = {path!r}: {_no_object_store(settings, path, folders)}")
        if not any(_is_below(path, folder) for folder in folders):
            raise BadInputError(
                f"{key} = {path!r}: no step can read it. Put it below one of {', '.join(folders)}, and give "
                "its path there."
            )


def _no_object_store(settings: KubeflowConfig, address: str, folders: list[str]) -> str:
    """Returns the reason why an address of an object store can't be read, and the fix."""
    scheme, _, rest = address.partition("://")
    if settings.backend == "vertex" and scheme == "gs":
        fix = f"Give '/gcs/{rest}', which is the same file on Vertex."
    else:
        fix = (
            "Put the files on a volume (a bucket can be mounted as one, by its CSI driver), and give their "
            f"path below one of {', '.join(folders)}."
        )
    return "steps read files, not object stores; spans are found by listing folders, too. " + fix


def _is_below(path: str, folder: str) -> bool:
    return PurePosixPath(posixpath.normpath(path)).is_relative_to(folder)


def check_for_steps(config: AnyConfig) -> None:
    """Checks that the steps can follow the settings of `[beam]`."""
    beam = config.beam
    if beam.runner != "direct":
        raise BadInputError(
            f'beam.runner = "{beam.runner}" ({engine_name(beam)}) does not work on Kubeflow: the '
            "artifacts are in kubeflow.root, which the steps' pods mount, but not an engine's workers. "
            'Set beam.runner = "direct"; beam.direct.workers gives each step processes of its pod, and '
            "[kubeflow.components.NAME] cpu and memory what they need."
        )


def step_options(config: BeamConfig) -> tuple[str, ...]:
    """Returns the Beam options of every step; they do not affect its result."""
    processes = direct_options(config.direct) if config.direct.workers > 1 else []
    return (*processes, *given_options(config))


def without_effect(config: AnyConfig) -> list[str]:
    """Returns a message of one or two sentences for each setting that has no effect on Kubeflow."""
    if not config.notify.has_receiver:
        return []
    return [
        "[notify] has no effect on Kubeflow: compiled pipelines contain no addresses. Let Prometheus "
        "watch the metric newest_run_status of `schedule metrics --root ROOT`, or the runs of Kubeflow."
    ]
