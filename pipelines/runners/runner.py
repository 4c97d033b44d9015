"""Interface of runners."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.config.beam import BeamConfig
    from pipelines.runners.component_launcher import ComponentLauncher


class Runner(Protocol):
    """Determines the order in which the components of a pipeline run, and how many run at a time.

    The launcher runs a single component, uses the cache and calls the observer, in the same way for all
    runners. A new runner is one file, and one line in `registry.py`.

    A runner that runs several components at a time finds their dependencies in `upstream_nodes`.

    Example:
        class LocalRunner(Runner):
            def run(self, launcher: ComponentLauncher) -> None:
                for component in launcher.components:
                    launcher.run(component)
    """

    def check(self, config: "BeamConfig") -> None:
        """Checks the settings of `[beam]`, before anything is written. The default accepts all.

        Raises:
          BadInputError: The runner does not support the settings.
        """
        del config

    @contextlib.contextmanager
    def beam_options(self, config: "BeamConfig", root: Root) -> Iterator[tuple[str, ...]]:
        """Yields the Beam options, while the engine that they name is running.

        The default runs Beam in this process, with the `args` of the configuration.

        Args:
          config: Settings of `[beam]`.
          root: Root of the runs.

        Raises:
          RunFailedError: The engine does not answer.
        """
        from pipelines.beam.options import given_options

        del root
        yield given_options(config)

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on.

        Args:
          launcher: Launcher of the pipeline's components.

        Raises:
          RunFailedError: A component failed; none of those that depend on it have run.
        """
