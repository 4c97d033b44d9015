"""Runs the components in this process, and their Beam pipelines on the engine of `[beam]`."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.runners.runner import Runner

if TYPE_CHECKING:
    from pipelines.config.beam import BeamConfig
    from pipelines.runners.component_launcher import ComponentLauncher


class BeamRunner(Runner):
    """Runs components in topological order; the engine parallelizes the work within each."""

    def check(self, config: "BeamConfig") -> None:
        """Checks that the configuration has a supported engine.

        Raises:
          BadInputError: The configuration has no engine, or one that cannot read the root.
        """
        if not config.has_engine:
            raise BadInputError(
                '--runner beam runs Beam on an engine, and beam.runner = "direct" with '
                "beam.direct.workers = 1 is what --runner local does. Set beam.direct.workers to the "
                'number of processes, or beam.runner to "flink" or "spark".'
            )
        if config.runner == "dataflow":
            raise BadInputError(
                '--runner beam cannot run with beam.runner = "dataflow": the root of a run is a local '
                "folder, which Dataflow's workers cannot read, and so is a root on Kubeflow. Use a Flink or "
                "Spark cluster that sees the root."
            )

    @contextlib.contextmanager
    def beam_options(self, config: "BeamConfig", root: Root) -> Iterator[tuple[str, ...]]:
        """Yields the Beam options, while the engine that they name is running.

        Args:
          config: Settings of `[beam]`.
          root: Root of the runs.

        Raises:
          RunFailedError: The engine does not answer.
        """
        from pipelines.beam.engine import running_engine

        with running_engine(config, root.beam) as options:
            yield (*options, *config.args)

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on."""
        for component in launcher.components:
            launcher.run(component)
