"""What a runner tells about a run while it goes on."""

from typing import Protocol


class RunObserver(Protocol):
    """Is told about each component; all methods are called from the runner's thread."""

    def component_started(self, component: str) -> None:
        """A component begins."""

    def component_finished(self, component: str, cached: bool, elapsed_secs: float) -> None:
        """A component has its outputs.

        Args:
          component: Node id.
          cached: Whether they are those of an earlier execution.
          elapsed_secs: Wall time.
        """

    def component_failed(self, component: str, elapsed_secs: float) -> None:
        """A component has raised."""
