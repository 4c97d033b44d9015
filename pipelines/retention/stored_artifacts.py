"""Artifacts of a root in ML Metadata, and the selection of those that must stay."""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import ml_metadata
from ml_metadata.proto import metadata_store_pb2

from pipelines.atomic_files import is_below, place_of
from pipelines.retention.kept_runs import KeptRuns
from pipelines.root import Root
from pipelines.root.metadata.store import PRUNED, run_contexts

_LOGGER = logging.getLogger(__name__)

_CHECKPOINTS = "model_run"
_STATISTICS = "statistics"
_OUTPUT = metadata_store_pb2.Event.OUTPUT


@dataclass
class StoredArtifact:
    """An artifact below a root.

    Attributes:
      artifact: Artifact in ML Metadata.
      used_by: Runs that made it, took it from the cache or read it.
      made_by: Runs that made it or took it from the cache.
      key: Key of the output, such as `model_run`.
    """

    artifact: metadata_store_pb2.Artifact
    used_by: set[str] = field(default_factory=set)
    made_by: set[str] = field(default_factory=set)
    key: str = ""

    @property
    def path(self) -> Path:
        """Folder of its files, without `..` and links, so that two spellings of a folder are equal."""
        return place_of(Path(self.artifact.uri))

    @property
    def is_live(self) -> bool:
        """True if its removal has not begun."""
        return self.artifact.state not in PRUNED


@dataclass(frozen=True)
class StoredExecutions:
    """Contents of ML Metadata about a root at one time.

    Attributes:
      artifacts: Artifacts whose files are below the folder of artifacts.
      runs: Runs of each execution, by its id.
      input_bases: Folders that CsvExampleGen read, by run.
    """

    artifacts: tuple[StoredArtifact, ...]
    runs: dict[int, set[str]]
    input_bases: dict[str, str]


def read_executions(store: ml_metadata.MetadataStore, root: Root) -> StoredExecutions:
    """Reads the executions of a root from ML Metadata.

    Args:
      store: Store of ML Metadata; no other process uses this root.
      root: Root of the runs.
    """
    runs: dict[int, set[str]] = defaultdict(set)
    bases: dict[str, str] = {}
    for context in run_contexts(store, root.metadata.root_id()):
        for execution in store.get_executions_by_context(context.id):
            runs[execution.id].add(context.name)
            for properties in (execution.properties, execution.custom_properties):
                if "input_base" in properties:
                    bases[context.name] = properties["input_base"].string_value
    events = store.get_events_by_execution_ids(sorted(runs)) if runs else []
    ids = sorted({event.artifact_id for event in events})
    folder = root.artifacts
    found = {}
    for artifact in store.get_artifacts_by_id(ids) if ids else []:
        path = Path(artifact.uri)
        if is_below(path, folder):
            found[artifact.id] = StoredArtifact(artifact)
        elif path.is_relative_to(folder):
            _LOGGER.warning(
                "%s, an artifact of the root, is %s, which is not below %s: prune leaves it alone.",
                artifact.uri,
                place_of(path),
                folder,
            )
    for event in events:
        stored = found.get(event.artifact_id)
        if stored is None:
            continue
        stored.used_by |= runs[event.execution_id]
        if event.type == _OUTPUT:
            stored.made_by |= runs[event.execution_id]
            stored.key = event.path.steps[0].key
    return StoredExecutions(tuple(found.values()), dict(runs), bases)


def must_stay(stored: StoredArtifact, kept: KeptRuns, of_versions: Iterable[str]) -> bool:
    """Returns True if an artifact is needed.

    Args:
      stored: Artifact to check.
      kept: Runs to keep.
      of_versions: Runs that made the models that serve or can serve again.
    """
    runs = kept.checkpoints if stored.key == _CHECKPOINTS else kept.artifacts
    if stored.used_by & runs:
        return True
    is_model = stored.path in kept.models
    return is_model or (stored.key == _STATISTICS and bool(stored.made_by & set(of_versions)))


def runs_of_versions(stored: Iterable[StoredArtifact], kept: KeptRuns) -> set[str]:
    """Returns the runs that made models that serve or can serve again: new data are compared with theirs."""
    return {run for item in stored if item.path in kept.models for run in item.made_by}
