"""What a runner is."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pipelines.config.beam import BeamConfig
    from pipelines.runners.component_launcher import ComponentLauncher


class Runner(Protocol):
    """Decides in which order the components of a pipeline run, and how many of them at a time.

    How one component runs, what is reused and what is reported is the same for all runners:
    that is the launcher's part. A new runner is one file, and one line in `registry.py`.

    A component's `upstream_nodes` are those that it depends on, for a runner that runs several at a time.

    Example:
        class LocalRunner(Runner):
            def run(self, launcher: ComponentLauncher) -> None:
                for component in launcher.components:
                    launcher.run(component)
    """

    def check(self, config: "BeamConfig") -> None:
        """Checks a configuration, before anything is written. The default takes any.

        Raises:
          BadInputError: The runner cannot do what it asks for.
        """
        del config

    @contextlib.contextmanager
    def beam_options(self, config: "BeamConfig", root: Path) -> Iterator[tuple[str, ...]]:
        """Yields the options of Beam, while what they name is there to do the work.

        The default has Beam work in this process, and takes from the configuration what stands in `args`.

        Args:
          config: The configuration.
          root: Root folder of the pipeline.

        Raises:
          RunFailedError: What is to do the work does not answer.
        """
        del root
        yield config.args

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on.

        Args:
          launcher: Knows the components of the pipeline and runs single ones.

        Raises:
          RunFailedError: A component failed; nothing that depends on it has run.
        """
