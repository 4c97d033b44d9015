"""What a runner is."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pipelines.runners.component_launcher import ComponentLauncher


class Runner(Protocol):
    """Decides in which order the components of a pipeline run, and how many of them at a time.

    How one component runs, what is reused and what is reported is the same for all runners:
    that is the launcher's part. A new runner is one file, and one line in `registry.py`.

    A component's `upstream_nodes` are those that it depends on, for a runner that runs several at a time.

    Example:
        class LocalRunner:
            def run(self, launcher: ComponentLauncher) -> None:
                for component in launcher.components:
                    launcher.run(component)
    """

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on.

        Args:
          launcher: Knows the components of the pipeline and runs single ones.

        Raises:
          RunFailedError: A component failed; nothing that depends on it has run.
        """
