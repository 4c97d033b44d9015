"""`run --runner kubeflow --local`: compiles the pipeline and executes the YAML on this machine."""

import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.config.kubeflow import VolumeConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import PipelineSource, TfxPipelineConfig
from pipelines.data.byte_checks import readable
from pipelines.data.staging import PATTERN_MARKS
from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow.compile.dag import PLAN
from pipelines.kubeflow.compile.given_parameters import typed_parameters
from pipelines.kubeflow.compile.pipeline_file import compile_pipeline
from pipelines.kubeflow.compile.user_code import loaded, paths_of
from pipelines.kubeflow.local_execution.cache import TaskCache
from pipelines.kubeflow.local_execution.compiled import CompiledPipeline
from pipelines.kubeflow.local_execution.containers import Engine, Processes, as_subprocess
from pipelines.kubeflow.local_execution.launcher import ContainerFailedError, Launcher
from pipelines.kubeflow.local_execution.workflow import Workflow
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
    given_config: PipelineConfig | TfxPipelineConfig,
    progress: Progress,
    parameters: Mapping[str, str],
    enable_cache: bool = True,
    parallelism: int = 2,
    engine: Engine = as_subprocess,
    processes: Processes | None = None,
) -> RunRecord:
    """Executes the compiled pipeline in a root, and returns the record of the run.

    `processes`: runner of those processes. Default: a new one.
    """
    with readable(root, "--root"):
        root = Root(root.path.resolve())
        check_root(root)
    root.lock.check_free()  # at once: compiling takes a while
    config = as_seen_here(given_config, root, enable_cache)
    if isinstance(config, PipelineConfig) and "data_path" not in parameters:
        _check_data_are_here(config.data.path)
    if given_config.kubeflow.training_job is not None and config.kubeflow.training_job is None:
        progress.display.line(
            "! kubeflow.training_job is not used with --local: its tasks are processes of the Trainer here, "
            "unless api_server names a Kubernetes"
        )
    progress.display.activity("compiling ...")
    text = compile_pipeline(config)
    pipeline = CompiledPipeline.parse(text)
    given = pipeline.parameters(typed_parameters(pipeline.specification, parameters))
    with root.lock.local_kubeflow.held():
        # After locking: a plain run takes its own lock before it checks this one.
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
            return _execute(workflow, given, root, run_id)
        finally:
            shutil.rmtree(launcher.folder, ignore_errors=True)


def as_seen_here(
    config: PipelineConfig | TfxPipelineConfig, root: Root, enable_cache: bool = True
) -> PipelineConfig | TfxPipelineConfig:
    """Returns a configuration with the root and the files of this machine.

    `config`: configuration for a cluster, or without `[kubeflow]`.
    """
    settings = config.kubeflow
    folders = {root.path.parent: None}
    changes: dict[str, Any] = {}
    if isinstance(config, TfxPipelineConfig):
        folders |= dict.fromkeys(_folders_of_definition(config.pipeline))
    else:
        for section, key in _FILES:
            values = getattr(config, section)
            path = getattr(values, key) if values is not None else None
            if path is not None:
                absolute = Path(path).absolute()
                changes[section] = values.model_copy(update={key: str(absolute)})
                folders[_folder_of(absolute)] = None
    job = settings.training_job
    components = settings.components
    if not enable_cache:
        components = {
            name: step.model_copy(update={"cache": False}) for name, step in components.items()
        }
    kubeflow = settings.model_copy(
        update={
            "backend": "kubeflow",
            "image": settings.image or _IMAGE,
            "code": None,
            "root": str(root),
            "volumes": tuple(
                VolumeConfig.model_construct(
                    claim=f"folder-{number}", path=str(folder), sub_path=""
                )
                for number, folder in enumerate(folders)
            ),
            "cache": settings.cache and enable_cache,
            "components": components,
            # Without an api_server, the job needs to run inside of a cluster.
            "training_job": job if job is not None and job.api_server else None,
        }
    )
    return config.model_copy(update={**changes, "kubeflow": kubeflow})


def _folders_of_definition(source: PipelineSource) -> Iterator[Path]:
    """Yields the folders of the files that a definition names."""
    yield Path(source.file).resolve().parent
    with loaded(source) as pipeline:
        for _, _, path in paths_of(pipeline):
            yield Path(path) if Path(path).is_dir() else Path(path).parent


def _check_data_are_here(path: str) -> None:
    """Checks that the data, or the folder of a pattern, are on this machine."""
    place = Path(path).absolute()
    if any(mark in path for mark in (*PATTERN_MARKS, "{")):
        place = _folder_of(place)
    if not place.exists():
        raise BadInputError(
            f"There is no file or folder {place} on this machine. data.path is where the cluster's volume "
            "is mounted; here, pass --set data.path=FILE."
        )


def _folder_of(path: Path) -> Path:
    """Returns the folder of all files of a path, which may be a pattern."""
    parts = path.parts
    plain = next(
        (
            index
            for index, part in enumerate(parts)
            if any(mark in part for mark in (*PATTERN_MARKS, "{"))
        ),
        len(parts) - 1,
    )
    return Path(*parts[:plain])


class TaskDisplay:
    """Shows the tasks, and the notes of Plan."""

    def __init__(self, progress: Progress, root: Root, run_id: str):
        self._progress = progress
        self._root = root
        self._run_id = run_id

    def task_started(self, name: str) -> None:
        """Shows that a task has begun."""
        self._progress.component_started(name)

    def task_finished(self, name: str, cached: bool, elapsed_secs: float) -> None:
        """Shows that a task has ended; for Plan also its notes, such as the spans."""
        self._progress.component_finished(name, cached, elapsed_secs)
        if name != PLAN:
            return
        record = _record_of(self._root, self._run_id)
        for note in record.notes if record is not None else ():
            self._progress.display.line(f"! {note}")

    def task_failed(self, name: str, elapsed_secs: float) -> None:
        """Shows that a task has failed."""
        self._progress.component_failed(name, elapsed_secs)


def _execute(
    workflow: Workflow, parameters: Mapping[str, Any], root: Root, run_id: str
) -> RunRecord:
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
    record = _record_of(root, run_id)
    if record is not None:
        return record if failure is None else _with_log(root, record, failure.log)
    reason = str(failure or "the step Plan has begun no run").removeprefix(f"{PLAN}: ")
    if failure is not None and failure.log is not None:
        reason = f"{reason} (log: {failure.log})"
    if failure is not None and failure.exit_code == EXIT_BAD_INPUT:
        raise BadInputError(reason)
    raise RunFailedError(PLAN, reason)


def _with_log(root: Root, record: RunRecord, log: Path | None) -> RunRecord:
    """Adds the log of the step that failed to the record of a run, writes and returns it."""
    if log is None:
        return record
    changed = record.changed(log=str(log))
    root.records.write(changed)
    return changed


def _record_of(root: Root, run_id: str) -> RunRecord | None:
    records = (record for record in root.records.read_all() if record.kubeflow_run == run_id)
    return next(records, None)
