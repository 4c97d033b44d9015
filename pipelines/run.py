"""One run, from the request to its record."""

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import evaluation
from pipelines.config import PipelineConfig, load_config
from pipelines.data.files import find_csv_files
from pipelines.data.profile import CsvProfile, profile_csv
from pipelines.data.staging import PATTERN_MARKS, stage
from pipelines.errors import BadInputError, RunFailedError
from pipelines.fingerprints import code_fingerprint, component_fingerprints
from pipelines.model_code import ModelCode, choose_model_code
from pipelines.progress import Progress
from pipelines.report.html import write_report
from pipelines.run_lock import is_locked, locked
from pipelines.run_log import OutputCapture
from pipelines.run_record import (
    UNFINISHED,
    ComponentRecord,
    Metrics,
    RunRecord,
    RunRecords,
    new_run_id,
    utc_now,
)
from pipelines.runners import check_runner
from pipelines.tabular.infer import check_label_column

_LOGGER = logging.getLogger(__name__)

if TYPE_CHECKING:
    from pipelines.runners.local import LocalRunner


@dataclass(frozen=True)
class RunRequest:
    """What the command line asks for.

    Attributes:
      root: Where everything of the pipeline is kept.
      config_file: TOML file.
      data: `--data`.
      label: `--label`.
      settings: `--set`, each `section.key=value`.
      runner: Name of a runner.
      enable_cache: Whether unchanged components are skipped.
      resume: Whether to go on with the newest run that did not end.
    """

    root: Path
    config_file: Path | None = None
    data: str | None = None
    label: str | None = None
    settings: tuple[str, ...] = ()
    runner: str = "local"
    enable_cache: bool = True
    resume: bool = False

    @property
    def gives_configuration(self) -> bool:
        """Whether there is anything to make a configuration of."""
        return bool(self.config_file or self.data or self.label or self.settings)


def run(request: RunRequest, progress: Progress, capture: OutputCapture) -> RunRecord:
    """Runs a pipeline and returns the record of it, whose status says how it ended.

    Raises:
      BadInputError: The data or the configuration cannot be used; the root was not touched.
    """
    check_runner(request.runner)
    root = request.root.resolve()
    _check_root(root)
    records = RunRecords(root)
    unfinished = _unfinished_run(records) if request.resume else None
    if request.resume and unfinished is None:
        progress.display.line("! There is no unfinished run to resume; this is a new one.")
    config = _configuration(request, unfinished)
    progress.display.activity(f"checking {config.data.path}")
    profile = profile_csv(find_csv_files(config.data.path))
    check_label_column(profile, config.data.label)
    evaluation.check_evaluator_config(config, list(profile.columns))
    if config.module is not None:
        progress.display.activity(f"loading {config.module.path or config.module.file}")
    code = choose_model_code(config, profile)
    if code.plan is not None:
        evaluation.check_metrics_fit(config, code.plan.label.problem_type)
    progress.max_steps = code.train_steps
    if unfinished is not None:
        _check_same_run(unfinished, config, profile, code)
    with locked(root):
        _mark_interrupted(records, except_for=unfinished)
        record = RunRecord(
            run_id=unfinished.run_id if unfinished else new_run_id(records.read_all()),
            name=config.name,
            status="running",
            started=unfinished.started if unfinished else utc_now(),
            config=config.model_dump(mode="json"),
            data_fingerprint=profile.fingerprint,
            log="",
            code_fingerprint=code_fingerprint(code),
        )
        record = record.changed(log=str(root / "logs" / f"{record.run_id}.log"))
        capture.keep_in(Path(record.log))
        notebook = _Notebook(records, record, progress)
        resumed = "resumed " if unfinished else ""
        progress.display.line(f"{resumed}run {record.run_id} of {config.name!r} in {root}")
        try:
            _run_components(request, config, profile, code, root, notebook)
        except RunFailedError as error:
            notebook.end("failed", reason=f"{error.component}: {error}")
        except KeyboardInterrupt:
            notebook.end("interrupted", reason="stopped by a signal")
        except Exception as error:  # a fault of ours, or of the installation
            _LOGGER.exception("run %s failed", record.run_id)
            notebook.end("failed", reason=f"{type(error).__name__}: {error}")
    return notebook.record


class _Notebook:
    """Observes a run, and keeps its record on disk up to date."""

    def __init__(self, records: RunRecords, record: RunRecord, progress: Progress):
        self._records = records
        self._progress = progress
        self._start = time.monotonic()
        self.record = record
        self.change()

    def change(self, **changes: Any) -> None:
        self.record = self.record.changed(**changes)
        self._records.write(self.record)

    def note(self, text: str) -> None:
        self._progress.display.line(f"! {text}")
        self.change(notes=(*self.record.notes, text))

    def end(self, status: str, **changes: Any) -> None:
        self.record = self.record.changed(status=status, finished=utc_now(), **changes)
        report = self._records.folder / f"{self.record.run_id}.html"
        write_report(self.record, report)
        self.change(report=str(report))

    def component_started(self, component: str) -> None:
        self._progress.component_started(component)

    def component_finished(self, component: str, cached: bool, elapsed_secs: float) -> None:
        self._progress.component_finished(component, cached, elapsed_secs)
        self._add(ComponentRecord(component, "cached" if cached else "finished", elapsed_secs))

    def component_failed(self, component: str, elapsed_secs: float) -> None:
        self._progress.component_failed(component, elapsed_secs)
        self._add(ComponentRecord(component, "failed", elapsed_secs))

    def _add(self, component: ComponentRecord) -> None:
        self.change(components=(*self.record.components, component))


def _run_components(
    request: RunRequest,
    config: PipelineConfig,
    profile: CsvProfile,
    code: ModelCode,
    root: Path,
    notebook: _Notebook,
) -> None:
    if code.plan is not None:
        _describe_plan(code, notebook)
    notebook.component_started("loading TFX")
    runner = _local_runner(request, config, profile, code, root, notebook)
    for node_id in runner.node_ids:
        runner.run_node(node_id)
        if node_id == "ExampleValidator":
            _judge_anomalies(config, runner.outputs(node_id)["anomalies"].path, notebook)
    _conclude(code, runner, notebook)


def _local_runner(
    request: RunRequest,
    config: PipelineConfig,
    profile: CsvProfile,
    code: ModelCode,
    root: Path,
    notebook: _Notebook,
) -> "LocalRunner":
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from pipelines.definitions.csv_to_serving import PipelinePlaces, csv_to_serving
    from pipelines.runners.local import LocalRunner

    data = stage(profile, code.required_label, root / "data")
    for reason in data.reasons:
        notebook.note(f"data: {reason} (copy in {data.folder})")
    (root / "metadata").mkdir(exist_ok=True)
    pipeline = csv_to_serving(
        name=config.name,
        data=data,
        code=code,
        eval_config=evaluation.build_eval_config(
            code.label, code.metrics, code.thresholds, code.slices
        ),
        places=PipelinePlaces(
            artifacts=root / "artifacts",
            metadata=root / "metadata" / "metadata.sqlite",
            serving=root / "serving",
        ),
        enable_cache=request.enable_cache,
        keep=config.pusher.keep,
        beam_args=config.beam.args,
    )
    fingerprints = component_fingerprints(notebook.record.run_id, profile.fingerprint, code)
    return LocalRunner(pipeline, notebook.record.run_id, fingerprints, notebook)


def _describe_plan(code: ModelCode, notebook: _Notebook) -> None:
    plan = code.plan
    if plan is None:
        return
    classes = f" with {len(plan.label.classes)} classes" if plan.label.classes else ""
    notebook.note(
        f"{plan.label.problem_type} problem: {plan.label.column!r}{classes} from "
        f"{len(plan.numeric)} numeric and {len(plan.categorical)} categorical features, "
        f"{plan.training.train_steps} steps of {plan.training.batch_size}"
    )
    for column, reason in plan.ignored.items():
        notebook.note(f"column {column!r} is not used: {reason}")


def _judge_anomalies(config: PipelineConfig, anomalies: Path, notebook: _Notebook) -> None:
    from pipelines.anomalies import read_anomalies

    found = read_anomalies(anomalies)
    for text in found:
        notebook.note(f"anomaly: {text}")
    if found and config.example_validator.on_anomalies == "fail":
        raise RunFailedError(
            "ExampleValidator",
            f"the data do not fit the schema ({len(found)} anomalies; the first: {found[0]}) and "
            'example_validator.on_anomalies = "fail"',
        )


def _conclude(code: ModelCode, runner: "LocalRunner", notebook: _Notebook) -> None:
    """Ends the record with the verdict and the pushed version that the components have left."""
    import components

    verdict = components.load_verdict(str(runner.outputs("Evaluator")["evaluation"].path))
    pushed = runner.outputs("Pusher")["pushed_model"].properties
    is_pushed = bool(pushed.get("pushed"))
    notebook.end(
        "pushed" if is_pushed else "not_blessed",
        version=str(pushed["pushed_version"]) if is_pushed else None,
        metrics=_in_order(verdict.metrics, code.metrics),
        baseline_metrics=_in_order(verdict.baseline_metrics, code.metrics),
        slices={name: _in_order(values, code.metrics) for name, values in verdict.slices.items()},
        reason=None if is_pushed else "; ".join(verdict.failures),
    )


def _in_order(metrics: Metrics, names: tuple[str, ...]) -> Metrics:
    """Returns the metrics in the order of their configuration, further ones behind.

    TFMA adds a `<metric>_diff` to the baseline's; who has both values needs no third.
    """
    return {
        name: metrics[name]
        for name in dict.fromkeys((*names, *metrics))
        if name in metrics and name.removesuffix("_diff") not in metrics.keys() - {name}
    }


def _configuration(request: RunRequest, unfinished: RunRecord | None) -> PipelineConfig:
    if unfinished is not None and not request.gives_configuration:
        return PipelineConfig.model_validate(unfinished.config)
    return load_config(request.config_file, request.data, request.label, request.settings)


def _unfinished_run(records: RunRecords) -> RunRecord | None:
    """Returns the newest run if it did not end."""
    newest = max(records.read_all(), key=lambda record: record.run_id, default=None)
    return newest if newest is not None and newest.status in UNFINISHED else None


def _check_same_run(
    unfinished: RunRecord, config: PipelineConfig, profile: CsvProfile, code: ModelCode
) -> None:
    """Checks that what is asked for is what the unfinished run was doing."""
    advice = "Start a new run without --resume; unchanged components are reused all the same."
    if profile.fingerprint != unfinished.data_fingerprint:
        raise BadInputError(
            f"--resume: the data in {config.data.path} have changed since run {unfinished.run_id} "
            f"started. {advice}"
        )
    before, now = _flat(unfinished.config), _flat(config.model_dump(mode="json"))
    for key in dict.fromkeys((*before, *now)):
        if now.get(key) != before.get(key):
            raise BadInputError(
                f"--resume: run {unfinished.run_id} was started with {key} = {before.get(key)!r}; "
                f"received {now.get(key)!r}. {advice}"
            )
    if code_fingerprint(code) != unfinished.code_fingerprint:
        module = config.module and (config.module.path or config.module.file)
        raise BadInputError(
            f"--resume: the code of {module or 'the generic model'} has changed since run "
            f"{unfinished.run_id} started, whose finished components would keep what the old code "
            f"made. {advice}"
        )


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the values of a configuration by `section.key`."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= (
            _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return flat


def _mark_interrupted(records: RunRecords, except_for: RunRecord | None) -> None:
    """Corrects the records of runs that were killed: with the lock in hand, nobody else runs."""
    for record in records.read_all():
        if record.status == "running" and (
            except_for is None or record.run_id != except_for.run_id
        ):
            records.write(record.changed(status="interrupted", reason="the process was killed"))


def read_runs(root: Path) -> list[RunRecord]:
    """Returns the records of all runs, oldest first; those that were killed as interrupted."""
    going_on = is_locked(root)
    return [
        record.changed(status="interrupted", reason="the process was killed")
        if record.status == "running" and not going_on
        else record
        for record in RunRecords(root).read_all()
    ]


def _check_root(root: Path) -> None:
    place = root
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise BadInputError(f"--root {root}: {place} is not a folder that can be written to.")
    marks = [mark for mark in PATTERN_MARKS if mark in str(root)]
    if marks:
        raise BadInputError(
            f"--root {root}: TFX would take {marks[0]!r} for a file pattern. Give a --root "
            f"without any of {PATTERN_MARKS}"
        )
