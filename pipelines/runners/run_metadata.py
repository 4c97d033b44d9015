"""What ML Metadata knows about the nodes of one run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration import metadata
from tfx.orchestration.portable.mlmd import context_lib, execution_lib

_Execution = metadata_store_pb2.Execution


@dataclass(frozen=True)
class OutputArtifact:
    """An artifact that a component has made.

    Attributes:
      path: Where it lies.
      properties: Its custom properties.
    """

    path: Path
    properties: dict[str, Any]


class RunMetadata:
    """Reads the executions of one run.

    Args:
      connection_config: Of the metadata store.
    """

    def __init__(self, connection_config: Any):
        self._connection_config = connection_config

    def execution(self, node: Any) -> Any:
        """Returns the execution of a pipeline node in its run, or None when there is none yet."""
        with metadata.Metadata(self._connection_config) as handle:
            contexts = context_lib.prepare_contexts(handle, node.contexts)
            executions = execution_lib.get_executions_associated_with_all_contexts(handle, contexts)
        return max(executions, key=lambda execution: execution.id, default=None)

    def is_finished(self, node: Any) -> bool:
        """Returns whether the node has its outputs."""
        execution = self.execution(node)
        return execution is not None and execution.last_known_state in (
            _Execution.COMPLETE,
            _Execution.CACHED,
        )

    def is_cached(self, node: Any) -> bool:
        """Returns whether the node's outputs are those of an earlier execution."""
        execution = self.execution(node)
        return execution is not None and execution.last_known_state == _Execution.CACHED

    def outputs(self, node: Any) -> dict[str, OutputArtifact]:
        """Returns the first output artifact by output key."""
        execution = self.execution(node)
        if execution is None:
            return {}
        with metadata.Metadata(self._connection_config) as handle:
            events = handle.store.get_events_by_execution_ids([execution.id])
            events = [event for event in events if event.type == metadata_store_pb2.Event.OUTPUT]
            artifacts = handle.store.get_artifacts_by_id([event.artifact_id for event in events])
        by_id = {artifact.id: artifact for artifact in artifacts}
        found: dict[str, OutputArtifact] = {}
        for event in events:
            artifact = by_id[event.artifact_id]
            properties = {
                name: getattr(value, value.WhichOneof("value"))
                for name, value in artifact.custom_properties.items()
            }
            found.setdefault(
                event.path.steps[0].key, OutputArtifact(Path(artifact.uri), properties)
            )
        return found
