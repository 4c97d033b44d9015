"""What a runner is."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pipelines.beam.config import BeamConfig

if TYPE_CHECKING:
    from pipelines.runners.component_launcher import ComponentLauncher


class Runner(Protocol):
    """Decides in which order the components of a pipeline run, and how many of them at a time.

    How one component runs, what is reused and what is reported is the same for all runners:
    that is the launcher's part. A new runner is one file, and one line in `registry.py`.

    Example:
        class LocalRunner:
            def check(self, config: BeamConfig) -> None:
                pass

            @contextlib.contextmanager
            def beam_options(self, config: BeamConfig, root: Path) -> Iterator[tuple[str, ...]]:
                yield config.args

            def run(self, launcher: ComponentLauncher) -> None:
                for component in launcher.components:
                    launcher.run(component)
    """

    def check(self, config: BeamConfig) -> None:
        """Checks a configuration; nothing has been written yet.

        Raises:
          BadInputError: The runner cannot do what it asks for.
        """

    def beam_options(
        self, config: BeamConfig, root: Path
    ) -> AbstractContextManager[tuple[str, ...]]:
        """Returns a context in which Beam's work can be done, with the options that it takes.

        Args:
          config: The configuration.
          root: Of the pipeline.

        Raises:
          RunFailedError: What does the work does not answer.
        """

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on.

        Args:
          launcher: Knows the components of the pipeline and runs single ones.

        Raises:
          RunFailedError: A component failed; nothing that depends on it has run.
        """
