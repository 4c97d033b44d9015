"""Resolves the statistics of the data that the served model was trained on."""

import ml_metadata
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.components.common import resolver
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from components.pusher.listing import list_versions
from components.pusher.provenance import read_provenance

_RUN_CONTEXT = "pipeline_run"
_OUTPUT = metadata_store_pb2.Event.OUTPUT


class ServedStatisticsStrategy(resolver.ResolverStrategy):
    """Resolves the `ExampleStatistics` of the pipeline run that made the served model, if there are any.

    Args:
        base_directory: Base directory of the Pusher.
        accepted_run: Id of another pipeline run whose data to compare with, such as one whose
            changes were accepted while the served version was in service. Default: the served version's run.

    Example:
        served_statistics = Resolver(
            strategy_class=ServedStatisticsStrategy,
            config={"base_directory": "serving"},
            statistics=Channel(type=ExampleStatistics),
        ).with_id("ServedStatistics")
        validator = ExampleValidator(baseline_statistics=served_statistics.outputs["statistics"], ...)
    """

    def __init__(self, base_directory: str, accepted_run: str = "") -> None:
        self._base_directory = base_directory
        self._accepted_run = accepted_run

    def resolve_artifacts(
        self, store: ml_metadata.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """Returns the statistics under the key of the only channel; empty if they are not known."""
        (key,) = input_dict
        existing = [
            artifact
            for artifact in store.get_artifacts_by_id(_outputs(store, self._executions(store), "statistics"))
            if fileio.isdir(artifact.uri)
        ]
        if not existing:
            return {key: []}
        newest = max(existing, key=lambda artifact: artifact.id)
        (artifact_type,) = store.get_artifact_types_by_id([newest.type_id])
        return {key: [artifact_utils.deserialize_artifact(artifact_type, newest)]}

    def _executions(self, store: ml_metadata.MetadataStore) -> list[int]:
        """Returns all executions of the runs whose data to compare with."""
        if self._accepted_run:
            context = store.get_context_by_type_and_name(_RUN_CONTEXT, self._accepted_run)
            contexts = [context] if context else []
        else:
            contexts = self._contexts_of_served_model(store)
        return [
            execution.id for context in contexts for execution in store.get_executions_by_context(context.id)
        ]

    def _contexts_of_served_model(self, store: ml_metadata.MetadataStore) -> list[metadata_store_pb2.Context]:
        served = list_versions(self._base_directory)
        provenance = read_provenance(self._base_directory, served[-1]) if served else None
        if provenance is None:
            return []
        models = [artifact.id for artifact in store.get_artifacts_by_uri(provenance.model_uri)]
        makers = {
            event.execution_id for event in store.get_events_by_artifact_ids(models) if event.type == _OUTPUT
        }
        return [
            context
            for execution in makers
            for context in store.get_contexts_by_execution(execution)
            if context.type == _RUN_CONTEXT
        ]


def _outputs(store: ml_metadata.MetadataStore, executions: list[int], key: str) -> list[int]:
    """Returns the ids of the outputs of executions under a key."""
    return [
        event.artifact_id
        for event in (store.get_events_by_execution_ids(executions) if executions else [])
        if event.type == _OUTPUT and event.path.steps[0].key == key
    ]
