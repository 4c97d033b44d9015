"""Runs single components of a pipeline in this process, with TFX's node Launcher."""

import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from apache_beam.runners.portability.fn_api_runner import worker_handlers
from tfx.dsl.compiler import compiler, constants
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.io import fileio
from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import (
    beam_executor_operator,
    launcher,
    outputs_utils,
    runtime_parameter_utils,
)
from tfx.proto.orchestration import executable_spec_pb2, placeholder_pb2
from tfx.types.artifact import Artifact
from tfx.types.channel import OutputChannel

from components.interruption import interruption
from pipelines.cache.outcome import CacheOutcome
from pipelines.errors import RunFailedError
from pipelines.root.metadata.store import FINGERPRINT
from pipelines.runners.causes import describe_cause, is_setting_error
from pipelines.runners.run_metadata import RunMetadata
from pipelines.terminal.signals import signal_has_come

Check = Callable[[Mapping[str, list[Artifact]]], None]
"""Check of a component's outputs by key; raises RunFailedError if the run must not go on."""

_LOGGER = logging.getLogger(__name__)


class RunObserver(Protocol):
    """Observer that is called before and after each component, from the runner's thread."""

    def component_started(self, component: BaseNode) -> None:
        """Called when a component begins."""

    def component_finished(
        self, component: BaseNode, cached: bool, elapsed_secs: float, outcome: CacheOutcome
    ) -> None:
        """Called when a component has its outputs.

        Args:
          component: Component of the pipeline.
          cached: True if the outputs are from an earlier execution.
          elapsed_secs: Wall time.
          outcome: Reason why it ran, or did not have to.
        """

    def component_failed(self, component: BaseNode, elapsed_secs: float) -> None:
        """Called when a component has raised an error."""


class ComponentLauncher:
    """Runs single components of a pipeline, reuses cached outputs, and returns artifacts.

    Args:
      pipeline: Pipeline of the components.
      run_id: Pipeline run id. With the id of a run that did not end, finished components keep their
        outputs and the others run again.
      fingerprints: Hash of a component's dependencies beyond its inputs and execution properties, such as
        the user's code and the contents of files; for components that have such dependencies.
      observer: Observer called before and after each component.
      checks: Check of a component's outputs, before other components run.
      beam_options: Further Beam options. They take precedence over the pipeline's own, and are not in the
        cache's key, since the place of the work does not affect the result.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run_id: str,
        fingerprints: Mapping[BaseNode, str],
        observer: RunObserver,
        checks: Mapping[BaseNode, Check] | None = None,
        beam_options: Sequence[str] = (),
    ):
        # Beam caches side inputs in this process, too, and measures each of them: a walk through all modules.
        worker_handlers.STATE_CACHE_SIZE_MB = 0
        self._components = tuple(pipeline.components)
        self._uses_cache = pipeline.enable_cache
        self._ir = compiler.Compiler().compile(pipeline)
        runtime_parameter_utils.substitute_runtime_parameter(
            self._ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
        )
        # The compiled pipeline and ML Metadata identify components by id; callers pass the component,
        # or a channel of it.
        self._nodes = {
            node.pipeline_node.node_info.id: node.pipeline_node for node in self._ir.nodes
        }
        for component, fingerprint in fingerprints.items():
            _add_parameter(self._nodes[component.id], FINGERPRINT, fingerprint)
        self._deployment = runner_utils.extract_local_deployment_config(self._ir)
        connections = self._deployment.metadata_connection_config
        self._connection = getattr(connections, connections.WhichOneof("connection_config"))
        self._metadata = RunMetadata(self._connection)
        self._observer = observer
        self._checks = checks or {}
        self._beam_operator = functools.partial(_BeamOperator, beam_options)

    @property
    def components(self) -> tuple[BaseNode, ...]:
        """Components, each after those that it depends on."""
        return self._components

    def run(self, component: BaseNode) -> None:
        """Runs one component, whose upstream components have run.

        Raises:
          RunFailedError: The component failed (chained from its error), or its check failed.
          RunInterruptedError: A signal has come before.
        """
        interruption.check()
        node = self._nodes[component.id]
        start = time.monotonic()
        self._observer.component_started(component)
        was_finished = self._metadata.is_finished(node)
        try:
            if not was_finished:
                self._remove_partial_outputs(node)
                self._launcher(component).launch()
                if not self._metadata.is_finished(node):
                    # The Launcher only logs why it could not resolve the inputs, so that a resolver's own
                    # message would be lost. This raises it once more.
                    self._metadata.resolve_inputs(node)
        except BaseException as error:  # the user's code may raise SystemExit, too
            self._observer.component_failed(component, time.monotonic() - start)
            if signal_has_come():
                raise
            _LOGGER.exception("%s failed", component.id)
            raise RunFailedError(
                component.id, describe_cause(error), is_bad_input=is_setting_error(error)
            ) from error
        if not self._metadata.is_finished(node):
            self._observer.component_failed(component, time.monotonic() - start)
            raise RunFailedError(component.id, "its inputs could not be resolved")
        cached = was_finished or self._metadata.is_cached(node)
        elapsed_secs = time.monotonic() - start
        outcome = self._metadata.cache_outcome(node, was_finished, self._uses_cache)
        self._observer.component_finished(component, cached, elapsed_secs, outcome)
        check = self._checks.get(component)
        if check is not None:
            check(self._metadata.outputs(node))

    def artifact(self, channel: OutputChannel) -> Artifact:
        """Returns the output artifact of a component of this pipeline.

        Args:
          channel: Output channel, such as `trainer.outputs["model"]`.

        Raises:
          LookupError: The component has not run.
        """
        artifacts = self._metadata.outputs(self._nodes[channel.producer_component_id])
        if not artifacts.get(channel.output_key):
            raise LookupError(f"There is no artifact yet in {channel}.")
        return artifacts[channel.output_key][0]

    def _launcher(self, component: BaseNode) -> launcher.Launcher:
        return launcher.Launcher(
            pipeline_node=self._nodes[component.id],
            mlmd_connection=metadata.Metadata(self._connection),
            pipeline_info=self._ir.pipeline_info,
            pipeline_runtime_spec=self._ir.runtime_spec,
            executor_spec=runner_utils.extract_executor_spec(self._deployment, component.id),
            custom_driver_spec=runner_utils.extract_custom_driver_spec(
                self._deployment, component.id
            ),
            custom_executor_operators={executable_spec_pb2.BeamExecutableSpec: self._beam_operator},
        )

    def _remove_partial_outputs(self, node: Any) -> None:
        """Removes the files of a killed execution, which would write to the same folder again."""
        execution = self._metadata.execution(node)
        if execution is None:
            return
        outputs = outputs_utils.OutputsResolver(
            node, self._ir.pipeline_info, self._ir.runtime_spec
        ).generate_output_artifacts(execution.id)
        outputs_utils.remove_output_dirs(
            {
                key: [artifact for artifact in artifacts if fileio.exists(artifact.uri)]
                for key, artifacts in outputs.items()
            }
        )


class _BeamOperator(beam_executor_operator.BeamExecutorOperator):
    """Runs an executor with further Beam options."""

    def __init__(self, beam_options: Sequence[str], **kwargs: Any):
        super().__init__(**kwargs)
        for option in beam_options:
            expression = placeholder_pb2.PlaceholderExpression()
            expression.value.string_value = option
            self.beam_pipeline_args.append(expression)


def _add_parameter(node: Any, name: str, value: str) -> None:
    if value:
        node.parameters.parameters[name].field_value.string_value = value
