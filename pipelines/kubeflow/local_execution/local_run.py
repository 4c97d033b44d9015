"""`run --runner kubeflow --local`: compiles the pipeline and executes the YAML on this machine."""

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.config.kubeflow import VolumeConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import AnyConfig, TfxPipelineConfig
from pipelines.data.byte_checks import readable
from pipelines.data.staging import PATTERN_MARKS
from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow.compile.dag import PLAN
from pipelines.kubeflow.compile.given_parameters import typed_parameters
from pipelines.kubeflow.compile.pipeline_file import compile_pipeline
from pipelines.kubeflow.compile.user_code import configured_paths, loaded
from pipelines.kubeflow.local_execution.containers import Engine, Processes, as_subprocess
from pipelines.kubeflow.local_execution.driver import CompiledPipeline, TaskCache
from pipelines.kubeflow.local_execution.launcher import ContainerFailedError, Launcher
from pipelines.kubeflow.local_execution.workflow import TaskDisplay, Workflow, kubeflow_record
from pipelines.kubeflow.step import EXIT_BAD_INPUT
from pipelines.kubeflow.steps.record_steps import end_run
from pipelines.root import Root
from pipelines.root.records import RunOutcome, RunRecord
from pipelines.runs.plan.inputs import check_root
from pipelines.terminal.progress import Progress
from pipelines.terminal.signals import ignore_further_signals, signal_has_come

_IMAGE = "local/pipelines"
_FILES = (("data", "path"), ("module", "file"), ("schema_", "path"), ("pipeline", "extend"))


def run_locally(
    root: Root,
    cluster_config: AnyConfig,
    progress: Progress,
    parameters: Mapping[str, str],
    enable_cache: bool = True,
    parallelism: int = 2,
    engine: Engine = as_subprocess,
    processes: Processes | None = None,
) -> RunRecord:
    """Executes the compiled pipeline in a root, and returns the record of the run."""
    with readable(root, "--root"):
        root = Root(root.path.resolve())
        check_root(root)
    root.lock.check_free()  # now, because compiling takes a while
    config = with_local_paths(cluster_config, root, enable_cache)
    if isinstance(config, PipelineConfig) and "data_path" not in parameters:
        _check_data_are_here(config.data.path)
    if cluster_config.kubeflow.training_job is not None and config.kubeflow.training_job is None:
        progress.display.line(
            "i kubeflow.training_job is not used with --local: its tasks are processes of the Trainer here, "
            "unless api_server is the address of a Kubernetes"
        )
    progress.display.activity("compiling ...")
    text = compile_pipeline(config)
    pipeline = CompiledPipeline.parse(text)
    values = pipeline.parameters(typed_parameters(pipeline.specification, parameters))
    with root.lock.local_kubeflow.held():
        # After locking: a plain run takes its own lock before it checks this lock.
        root.lock.writing.check_free()
        folder = root.local_kubeflow
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pipeline.yaml").write_text(text, encoding="utf-8")
        run_id = str(uuid.uuid4())
        launcher = Launcher(
            pipeline,
            run_id,
            folder / "containers" / run_id,
            root.logs / f"kubeflow-{run_id}",
            engine,
            processes or Processes(),
            tuple(Path(volume.path) for volume in config.kubeflow.volumes),
        )
        workflow = Workflow(
            pipeline,
            launcher,
            TaskCache(folder / "cache" / pipeline.name),
            TaskDisplay(progress, root, run_id),
            parallelism,
        )
        progress.display.line(f"run {run_id} of {pipeline.name!r}, compiled, in {root}")
        try:
            return _execute(workflow, values, root, run_id)
        finally:
            shutil.rmtree(launcher.folder, ignore_errors=True)


def with_local_paths(config: AnyConfig, root: Root, enable_cache: bool = True) -> AnyConfig:
    """Returns a configuration, for a cluster or without `[kubeflow]`, with the files of this machine."""
    settings = config.kubeflow
    folders = {root.path.parent: None}
    changes: dict[str, Any] = {}
    if isinstance(config, TfxPipelineConfig):
        folders[Path(config.pipeline.file).resolve().parent] = None
        with loaded(config.pipeline) as pipeline:
            for _, _, file in configured_paths(pipeline):
                folders[Path(file) if Path(file).is_dir() else Path(file).parent] = None
    else:
        for section, key in _FILES:
            values = getattr(config, section)
            path = getattr(values, key) if values is not None else None
            if path is not None:
                absolute = Path(path).absolute()
                changes[section] = values.model_copy(update={key: str(absolute)})
                folders[_containing_folder(absolute)] = None
    job = settings.training_job
    components = settings.components
    if not enable_cache:
        components = {name: step.model_copy(update={"cache": False}) for name, step in components.items()}
    kubeflow = settings.model_copy(
        update={
            "backend": "kubeflow",
            "image": settings.image or _IMAGE,
            "code": None,
            "root": str(root),
            "volumes": tuple(
                VolumeConfig.model_construct(claim=f"folder-{number}", path=str(folder), sub_path="")
                for number, folder in enumerate(folders)
            ),
            "cache": settings.cache and enable_cache,
            "components": components,
            # Without an api_server, the job needs to run inside of a cluster.
            "training_job": job if job is not None and job.api_server else None,
        }
    )
    return config.model_copy(update={**changes, "kubeflow": kubeflow})


def _check_data_are_here(path: str) -> None:
    """Checks that the data, or the folder of a pattern, are on this machine."""
    file = Path(path).absolute()
    if any(mark in path for mark in (*PATTERN_MARKS, "{")):
        file = _containing_folder(file)
    if not file.exists():
        raise BadInputError(
            f"There is no file or folder {file} on this machine. data.path is where the cluster's volume "
            "is mounted; here, pass --set data.path=FILE."
        )


def _containing_folder(path: Path) -> Path:
    """Returns the folder of all files of a path, which may be a pattern."""
    parts = path.parts
    plain = next(
        (index for index, part in enumerate(parts) if any(mark in part for mark in (*PATTERN_MARKS, "{"))),
        len(parts) - 1,
    )
    return Path(*parts[:plain])


def _execute(workflow: Workflow, parameters: Mapping[str, Any], root: Root, run_id: str) -> RunRecord:
    failure = None
    try:
        try:
            workflow.run(parameters)
        finally:
            ignore_further_signals()
    except BaseException as error:
        if signal_has_come():
            record = end_run(root, run_id, RunOutcome("interrupted", reason="stopped by a signal"))
            if record is not None:
                return record
        if not isinstance(error, ContainerFailedError):
            raise
        failure = error
    record = kubeflow_record(root, run_id)
    if record is not None:
        if failure is not None and failure.log is not None:
            record = record.changed(log=str(failure.log))
            root.records.write(record)
        return record
    reason = str(failure or "the step Plan did not start a run").removeprefix(f"{PLAN}: ")
    if failure is not None and failure.log is not None:
        reason = f"{reason} (log: {failure.log})"
    if failure is not None and failure.exit_code == EXIT_BAD_INPUT:
        raise BadInputError(reason)
    raise RunFailedError(PLAN, reason)
