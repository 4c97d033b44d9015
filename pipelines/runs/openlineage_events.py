"""The OpenLineage events of a run and its steps: START, and then COMPLETE, FAIL or ABORT."""

import contextlib
import hashlib
import json
import logging
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import TypeVar
from urllib.parse import urlsplit

from openlineage.client import facet_v2 as facets
from openlineage.client.client import OpenLineageClient
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    set_producer,
)
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

from pipelines.config.lineage import LineageConfig
from pipelines.config.span_pattern import before_placeholder
from pipelines.errors import counted
from pipelines.root import Root
from pipelines.root.records import ComponentRecord, RunRecord
from pipelines.scheduling.ticks import time_of_key
from pipelines.steps.step_folders import FinishedStep, StepFolders, find_pushes
from pipelines.steps.step_plan import with_root

_Dataset = TypeVar("_Dataset", InputDataset, OutputDataset)


class Datasets:
    """The datasets of a run and of its steps.

    A dataset keeps its name from run to run. Its version is the fingerprint of what this run read or wrote.
    """

    def __init__(self, root: Root, record: RunRecord, namespace: str):
        self._root = root
        self._pipeline = record.name
        self._namespace = namespace
        self._data = _data_datasets(record)
        self._sources = {data.name: data for data in self._data}
        self._pushed: dict[str, OutputDataset] = {}

    @property
    def run_datasets(self) -> tuple[list[InputDataset], list[OutputDataset]]:
        """Sources from outside of the root that the run has read, and versions that it has pushed."""
        return list(self._sources.values()), list(self._pushed.values())

    def add_version(self, version: str) -> None:
        """Adds a version of the root to what the run has pushed."""
        self._add_pushed(str(self._root.serving), version)

    def step_datasets(self, step: FinishedStep) -> tuple[list[InputDataset], list[OutputDataset]]:
        """Returns the datasets that a step has read and written, and adds them to the run's."""
        refs = [ref for refs in step.plan["inputs"].values() for ref in refs]
        inputs = [
            _external(InputDataset, str(self._root.path / ref["folder"]))
            if "folder" in ref  # it is the output of no step
            else self._artifact(InputDataset, ref["component"], ref["key"], ref["step"])
            for ref in refs
        ]
        sources = self._step_sources(step)
        self._sources.update({source.name: source for source in sources})
        outputs = [self._artifact(OutputDataset, step.component, key, step.name) for key in step.outputs]
        for push in find_pushes([step]):
            if push.destination:
                folder, _, version = push.destination.rpartition("/")
                outputs.append(self._add_pushed(folder, version))
        return inputs + sources, outputs

    def _add_pushed(self, folder: str, version: str) -> OutputDataset:
        pushed = _external(OutputDataset, folder, version)
        self._pushed[pushed.name] = pushed
        return pushed

    def _step_sources(self, step: FinishedStep) -> list[InputDataset]:
        """Returns the datasets that an Importer or an ExampleGen has read from outside of the root."""
        parameters = with_root(step.plan["parameters"], self._root.path)
        if "artifact_uri" in parameters:
            version = step.plan["fingerprints"]["content"]
            return [_external(InputDataset, parameters["artifact_uri"], version)]
        texts = {
            name: value.get("fieldValue", {}).get("stringValue", "")
            for name, value in parameters.get("parameters", {}).items()
        }
        if not texts.get("input_base"):
            return []
        version = _version_of_files(texts.get("input_fingerprint", ""))
        return self._data or [_external(InputDataset, texts["input_base"], version)]

    def _artifact(self, kind: type[_Dataset], component: str, key: str, step: str) -> _Dataset:
        """Returns an output of a step; its files are in the folder `<component>/<step>` of the store."""
        store = facets.datasource_dataset.DatasourceDatasetFacet(
            name=f"{self._pipeline}.artifacts", uri=self._root.artifacts.as_uri()
        )
        name = f"{self._pipeline}.{component}.{key}"
        return kind(self._namespace, name, facets={"version": _version(step), "dataSource": store})


def _external(kind: type[_Dataset], uri: str, version: str = "") -> _Dataset:
    """Returns a dataset outside of the pipeline, by OpenLineage's rules for the names of files."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme != "file":
        bucket, _, name = rest.partition("/")
        namespace = f"{scheme}://{bucket}"
    else:
        namespace, name = "file", os.path.abspath(rest or uri)
    return kind(namespace, name or "/", facets={"version": _version(version)} if version else {})


def _version(version: str) -> facets.dataset_version_dataset.DatasetVersionDatasetFacet:
    return facets.dataset_version_dataset.DatasetVersionDatasetFacet(version)


def _data_datasets(record: RunRecord) -> list[InputDataset]:
    """Returns the data of a run from a CSV: a path without what differs from span to span."""
    files, path = record.data_files, record.section("data").get("path")
    if not files or path is None:
        return []
    start = re.split(r"[*?[]", before_placeholder(path))[0]
    place = path if start == path else os.path.dirname(start) or "."
    version = files[0]["sha256"] if len(files) == 1 else record.data_fingerprint
    data = _external(InputDataset, place, version)
    columns = [
        facets.schema_dataset.SchemaDatasetFacetFields(column["name"], column["kind"])
        for column in record.columns
    ]
    data.facets = {**(data.facets or {}), "schema": facets.schema_dataset.SchemaDatasetFacet(columns)}
    statistics = facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
        record.num_rows, sum(file["bytes"] for file in files), len(files)
    )
    data.inputFacets = {"inputStatistics": statistics}
    return [data]


def _version_of_files(fingerprint: str) -> str:
    """Returns the version of an ExampleGen's files: of a single one its SHA-256, as for a run of ours."""
    with contextlib.suppress(ValueError, AttributeError):  # TFX's own is not JSON
        hashes = [str(value) for value in json.loads(fingerprint).values()]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256(fingerprint.encode()).hexdigest()
    return fingerprint


_LOGGER = logging.getLogger(__name__)

_TIMEOUT_SECS = 2.0
_ENDS = {"failed": RunState.FAIL, "interrupted": RunState.ABORT}
_PROGRAM = "estimator-pipelines"
_INTEGRATION = "ESTIMATOR_PIPELINES"


@contextlib.contextmanager
def _logs_errors() -> Iterator[None]:
    """Logs an error in making an event: it must not cost the run."""
    try:
        yield
    except Exception:
        _LOGGER.exception("an OpenLineage event could not be made")


class OpenLineageEvents:
    """Sends the events of one attempt at a run.

    OpenLineage expects nothing after FAIL or ABORT, so every attempt at a run that is resumed is a run there.
    """

    def __init__(self, root: Root, record: RunRecord):
        settings = LineageConfig.model_validate(record.section("lineage"))
        version = record.environment.get(_PROGRAM, "0")
        set_producer(f"pkg:pypi/{_PROGRAM}@{version}")
        self._root = root
        self._record = record
        self._namespace = settings.namespace or record.name
        self._receiver = settings.openlineage or "file"
        self._client = OpenLineageClient(transport=_transport(self._receiver, root))
        self._unsent: list[RunEvent] = []
        self._num_lost = 0
        self._is_down = False
        self._error: Exception | None = None
        # Two machines may start a run in the same second, in roots with the same path.
        place = f"{record.environment.get('host')}:{root}:{record.run_id}:{record.attempt}"
        self._run_uuid = uuid.uuid5(uuid.NAMESPACE_URL, f"{_PROGRAM}:{place}")
        self._engine = facets.processing_engine_run.ProcessingEngineRunFacet(version, _PROGRAM)
        self._running: list[str] = []
        self._datasets = Datasets(root, record, self._namespace)

    @_logs_errors()
    def run_started(self) -> None:
        self._send(RunState.START, datasets=self._datasets.run_datasets)

    @_logs_errors()
    def component_started(self, name: str) -> None:
        self._running.append(name)
        self._send(RunState.START, name)

    @_logs_errors()
    def component_ended(self, component: ComponentRecord) -> None:
        """Sends the COMPLETE of a component; a failed one waits for the end of the run, and its reason."""
        name = component.name
        if name not in self._running:  # recorded when all is over, as on Kubeflow
            self._running.append(name)
            start = datetime.now(timezone.utc) - timedelta(seconds=component.elapsed_secs)
            self._send(RunState.START, name, time=start)
        if component.status == "failed":
            return
        self._running.remove(name)
        step = StepFolders(self._root.artifacts).finished(name, component.step)
        datasets = self._datasets.step_datasets(step) if step else ([], [])
        tags = {"status": component.status, "step": component.step, "reason": component.reason}
        self._send(RunState.COMPLETE, name, datasets, tags)

    @_logs_errors()
    def run_ended(self, record: RunRecord) -> str | None:
        """Sends the end of the run and of the steps that it stopped; returns a note if events are lost."""
        end = _ENDS.get(record.status, RunState.COMPLETE)
        for name in self._running:
            stopped = RunState.ABORT if end is RunState.ABORT else RunState.FAIL
            self._send(stopped, name, error=record.reason)
        self._running.clear()
        return self._send_run(end, record)

    @_logs_errors()
    def run_killed(self, record: RunRecord) -> None:
        """Sends the end of a run whose process was killed: with it ended the first step without an end."""
        ended = {component.name for component in record.components}
        self._running += [name for name in record.graph if name not in ended][:1]
        self.run_ended(record)

    @_logs_errors()
    def approved(self, record: RunRecord) -> str | None:
        """Sends the version that an approval has pushed; returns a note if the event is lost."""
        return self._send_run(RunState.OTHER, record)

    def _send_run(self, kind: RunState, record: RunRecord) -> str | None:
        if record.version:
            self._datasets.add_version(record.version)
        tags = {
            "status": record.shown_status,
            "version": record.version,
            "reason": record.reason,
            "scheduled_by": record.scheduled_by,
        }
        error = record.reason if kind in (RunState.FAIL, RunState.ABORT) else None
        self._is_down = False  # one more try at the end
        self._send(kind, "", self._datasets.run_datasets, tags, error)
        num_lost = self._num_lost + len(self._unsent)
        if not num_lost:
            return None
        events = counted(num_lost, "OpenLineage event")
        return f"{events} did not reach {self._receiver}: {self._error}"

    def _send(
        self,
        kind: RunState,
        component: str = "",
        datasets: tuple[list[InputDataset], list[OutputDataset]] = ([], []),
        tags: Mapping[str, str | None] | None = None,
        error: str | None = None,
        time: datetime | None = None,
    ) -> None:
        """Sends an event, after those that wait since the receiver was down."""
        named = {"run_id": self._record.run_id, **(tags or {})}
        run_facets: dict[str, facets.RunFacet] = {
            "processing_engine": self._engine,
            "tags": facets.tags_run.TagsRunFacet(
                [
                    facets.tags_run.TagsRunFacetFields(key, value, _INTEGRATION)
                    for key, value in named.items()
                    if value
                ]
            ),
        }
        if component:
            run_facets["parent"] = facets.parent_run.ParentRunFacet(
                facets.parent_run.Run(self._run_uuid_text()),
                facets.parent_run.Job(self._namespace, self._record.name),
            )
        elif due := time_of_key((self._record.scheduled_by or "").rpartition("/")[2]):
            text = f"{due:%Y-%m-%dT%H:%M:%SZ}"
            run_facets["nominalTime"] = facets.nominal_time_run.NominalTimeRunFacet(text)
        if error:
            run_facets["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(error, "Python")
        kind_of_job = facets.job_type_job.JobTypeJobFacet(
            "BATCH", _INTEGRATION, "TASK" if component else "DAG"
        )
        name = f"{self._record.name}.{component}" if component else self._record.name
        event = RunEvent(
            eventType=kind,
            eventTime=(time or datetime.now(timezone.utc)).isoformat(),
            run=Run(self._run_uuid_text(component), run_facets),
            job=Job(self._namespace, name, {"jobType": kind_of_job}),
            inputs=datasets[0],
            outputs=datasets[1],
        )
        self._unsent.append(event)
        while self._unsent and not self._is_down:
            try:
                self._client.emit(self._unsent[0])
            except Exception as problem:
                self._error = problem
                response = getattr(problem, "response", None)
                if response is None or response.status_code >= 500:
                    self._is_down = True
                    return
                self._num_lost += 1  # the receiver refuses this event
            self._unsent.pop(0)

    def _run_uuid_text(self, component: str = "") -> str:
        return str(uuid.uuid5(self._run_uuid, component) if component else self._run_uuid)


def _transport(receiver: str, root: Root) -> FileTransport | HttpTransport:
    if receiver == "file":
        return FileTransport(FileConfig(str(root.openlineage), append=True))
    parts = urlsplit(receiver)
    key = os.environ.get("OPENLINEAGE_API_KEY")
    return HttpTransport(
        HttpConfig(
            url=receiver,
            endpoint="api/v1/lineage" if parts.path in ("", "/") else receiver,
            timeout=_TIMEOUT_SECS,
            auth=ApiKeyTokenProvider({"apiKey": key}) if key else TokenProvider({}),
            retry={"total": 0},
        )
    )
