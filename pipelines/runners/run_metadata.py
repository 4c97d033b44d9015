"""Reads the nodes of one run from ML Metadata."""

from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration import metadata
from tfx.orchestration.portable import inputs_utils
from tfx.orchestration.portable.mlmd import context_lib, execution_lib
from tfx.types.artifact import Artifact

from pipelines.cache.outcome import CacheOutcome, explain

_Execution = metadata_store_pb2.Execution


class RunMetadata:
    """Reads the executions of one run.

    Args:
      connection_config: Connection to the metadata store.
    """

    def __init__(self, connection_config: Any):
        self._connection_config = connection_config

    def execution(self, node: Any) -> Any:
        """Returns the execution of a pipeline node in its run; None if there is none yet."""
        with metadata.Metadata(self._connection_config) as handle:
            contexts = context_lib.prepare_contexts(handle, node.contexts)
            executions = execution_lib.get_executions_associated_with_all_contexts(handle, contexts)
        return max(executions, key=lambda execution: execution.id, default=None)

    def resolve_inputs(self, node: Any) -> None:
        """Resolves the inputs of a pipeline node, and raises the error if they can't be resolved."""
        with metadata.Metadata(self._connection_config) as handle:
            inputs_utils.resolve_input_artifacts(pipeline_node=node, metadata_handle=handle)

    def is_finished(self, node: Any) -> bool:
        """Returns True if the node has its outputs."""
        execution = self.execution(node)
        return execution is not None and execution.last_known_state in (
            _Execution.COMPLETE,
            _Execution.CACHED,
        )

    def is_cached(self, node: Any) -> bool:
        """Returns True if the node's outputs are from an earlier execution."""
        execution = self.execution(node)
        return execution is not None and execution.last_known_state == _Execution.CACHED

    def cache_outcome(self, node: Any, was_finished: bool, uses_cache: bool) -> CacheOutcome:
        """Returns the reason why a node with outputs ran, or did not have to.

        Args:
          node: Node of the compiled pipeline.
          was_finished: True if it had its outputs before.
          uses_cache: True if the cache was enabled.
        """
        execution = self.execution(node)
        with metadata.Metadata(self._connection_config) as handle:
            return explain(handle.store, node, execution, was_finished, uses_cache)

    def outputs(self, node: Any) -> dict[str, list[Artifact]]:
        """Returns the output artifacts by key; empty if the node has not run."""
        execution = self.execution(node)
        if execution is None:
            return {}
        with metadata.Metadata(self._connection_config) as handle:
            return execution_lib.get_output_artifacts(handle, execution.id)
