"""The datasets of OpenLineage events: artifacts of the steps, and files and versions outside of them."""

import contextlib
import hashlib
import json
import os
import re
from typing import TypeVar

from openlineage.client import facet_v2 as facets
from openlineage.client.event_v2 import InputDataset, OutputDataset

from pipelines.config.span_pattern import before_placeholder
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.steps.push_destination import pushes_of
from pipelines.steps.step_folders import FinishedStep
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
        self._data = _data_of(record)
        self._sources = {data.name: data for data in self._data}
        self._pushed: dict[str, OutputDataset] = {}

    @property
    def of_run(self) -> tuple[list[InputDataset], list[OutputDataset]]:
        """Sources from outside of the root that the run has read, and versions that it has pushed."""
        return list(self._sources.values()), list(self._pushed.values())

    def add_version(self, version: str) -> None:
        """Adds a version of the root to what the run has pushed."""
        self._add_pushed(str(self._root.serving), version)

    def of_step(self, step: FinishedStep) -> tuple[list[InputDataset], list[OutputDataset]]:
        """Returns what a step has read and written; it becomes part of the run's."""
        refs = [ref for refs in step.plan["inputs"].values() for ref in refs]
        inputs = [
            _external(InputDataset, str(self._root.path / ref["folder"]))
            if "folder" in ref  # it is the output of no step
            else self._artifact(InputDataset, ref["component"], ref["key"], ref["step"])
            for ref in refs
        ]
        sources = self._sources_of(step)
        self._sources.update({source.name: source for source in sources})
        outputs = [
            self._artifact(OutputDataset, step.component, key, step.name) for key in step.outputs
        ]
        for push in pushes_of([step]):
            if push.destination:
                folder, _, version = push.destination.rpartition("/")
                outputs.append(self._add_pushed(folder, version))
        return inputs + sources, outputs

    def _add_pushed(self, folder: str, version: str) -> OutputDataset:
        pushed = _external(OutputDataset, folder, version)
        self._pushed[pushed.name] = pushed
        return pushed

    def _sources_of(self, step: FinishedStep) -> list[InputDataset]:
        """Returns what an Importer or an ExampleGen has read from outside of the root."""
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


def _external(kind: type[_Dataset], place: str, version: str = "") -> _Dataset:
    """Returns a dataset outside of the pipeline, by OpenLineage's rules for the names of files."""
    scheme, separator, rest = place.partition("://")
    if separator and scheme != "file":
        bucket, _, name = rest.partition("/")
        namespace = f"{scheme}://{bucket}"
    else:
        namespace, name = "file", os.path.abspath(rest or place)
    return kind(namespace, name or "/", facets={"version": _version(version)} if version else {})


def _version(version: str) -> facets.dataset_version_dataset.DatasetVersionDatasetFacet:
    return facets.dataset_version_dataset.DatasetVersionDatasetFacet(version)


def _data_of(record: RunRecord) -> list[InputDataset]:
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
    data.facets = {
        **(data.facets or {}),
        "schema": facets.schema_dataset.SchemaDatasetFacet(columns),
    }
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
