"""Runs a pipeline's components one after the other in this process, with TFX's node Launcher."""

import logging
import shutil
import sysconfig
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import compiler, constants
from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import launcher, runtime_parameter_utils

from pipelines.errors import RunFailedError
from pipelines.runners.observer import RunObserver
from pipelines.runners.run_metadata import OutputArtifact, RunMetadata

FINGERPRINT = "input_fingerprint"
"""Execution property that makes changed code or data a changed execution."""

_LOGGER = logging.getLogger(__name__)


class LocalRunner:
    """Runs the nodes of one pipeline in topological order.

    Args:
      pipeline: The pipeline.
      run_id: Its pipeline run id. With the id of a run that did not end, finished components
        keep their outputs and the others run again.
      fingerprints: By node id, a hash of what the node depends on beyond its inputs and
        execution properties: the user's code, the contents of files. `*` is for all nodes.
      observer: Is told about each component.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run_id: str,
        fingerprints: Mapping[str, str],
        observer: RunObserver,
    ):
        self._ir = compiler.Compiler().compile(pipeline)
        runtime_parameter_utils.substitute_runtime_parameter(
            self._ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
        )
        self._nodes = {
            node.pipeline_node.node_info.id: node.pipeline_node for node in self._ir.nodes
        }
        for node_id, node in self._nodes.items():
            parts = [fingerprints.get("*", ""), fingerprints.get(node_id, "")]
            _add_parameter(node, FINGERPRINT, "-".join(filter(None, parts)))
        self._deployment = runner_utils.extract_local_deployment_config(self._ir)
        connections = self._deployment.metadata_connection_config
        self._connection = getattr(connections, connections.WhichOneof("connection_config"))
        self._metadata = RunMetadata(self._connection)
        self._observer = observer

    @property
    def node_ids(self) -> list[str]:
        """The nodes in the order in which they run."""
        return list(self._nodes)

    def run(self) -> None:
        """Runs all nodes.

        Raises:
          RunFailedError: A component failed; chained from what it raised.
        """
        for node_id in self._nodes:
            self.run_node(node_id)

    def run_node(self, node_id: str) -> None:
        """Runs one node, whose upstream nodes have run.

        Raises:
          RunFailedError: The component failed; chained from what it raised.
        """
        node = self._nodes[node_id]
        start = time.monotonic()
        self._observer.component_started(node_id)
        was_finished = self._metadata.is_finished(node)
        if not was_finished:
            self._remove_partial_outputs(node)
        try:
            self._launcher(node_id).launch()
        except Exception as error:
            self._observer.component_failed(node_id, time.monotonic() - start)
            _LOGGER.exception("%s failed", node_id)
            raise RunFailedError(node_id, describe_cause(error)) from error
        except BaseException:
            self._observer.component_failed(node_id, time.monotonic() - start)
            raise
        if not self._metadata.is_finished(node):
            # The Launcher reports inputs that cannot be resolved in the log only.
            self._observer.component_failed(node_id, time.monotonic() - start)
            raise RunFailedError(node_id, "its inputs could not be resolved")
        cached = was_finished or self._metadata.is_cached(node)
        self._observer.component_finished(node_id, cached, time.monotonic() - start)

    def outputs(self, node_id: str) -> dict[str, OutputArtifact]:
        """Returns a node's output artifacts by output key."""
        return self._metadata.outputs(self._nodes[node_id])

    def _launcher(self, node_id: str) -> launcher.Launcher:
        return launcher.Launcher(
            pipeline_node=self._nodes[node_id],
            mlmd_connection=metadata.Metadata(self._connection),
            pipeline_info=self._ir.pipeline_info,
            pipeline_runtime_spec=self._ir.runtime_spec,
            executor_spec=runner_utils.extract_executor_spec(self._deployment, node_id),
            custom_driver_spec=runner_utils.extract_custom_driver_spec(self._deployment, node_id),
        )

    def _remove_partial_outputs(self, node: Any) -> None:
        """Removes what an execution that was killed has left: the same one writes there again."""
        execution = self._metadata.execution(node)
        if execution is None:
            return
        root = Path(self._ir.runtime_spec.pipeline_root.field_value.string_value)
        for key in node.outputs.outputs:
            place = root / node.node_info.id / key / str(execution.id)
            shutil.rmtree(place, ignore_errors=True)


def describe_cause(error: BaseException) -> str:
    """Returns what started a chain of errors: type, first line, and the line of code it is from.

    That is the last line of code that is no installed library's, such as one of the user's module.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    text = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own_code(frame.filename)]
    return f"{text} ({own[-1].filename}, line {own[-1].lineno})" if own else text


def _is_own_code(filename: str) -> bool:
    path = Path(filename)
    libraries = (sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))
    return (
        path != Path(__file__)
        and path.is_file()
        and not any(path.is_relative_to(library) for library in libraries)
    )


def _add_parameter(node: Any, name: str, value: str) -> None:
    if value:
        node.parameters.parameters[name].field_value.string_value = value
