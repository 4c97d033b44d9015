"""What is told about a run while it goes on."""

from typing import Protocol

from tfx.dsl.components.base.base_node import BaseNode


class RunObserver(Protocol):
    """Is told about each component; all methods are called from the runner's thread."""

    def component_started(self, component: BaseNode) -> None:
        """A component begins."""

    def component_finished(self, component: BaseNode, cached: bool, elapsed_secs: float) -> None:
        """A component has its outputs.

        Args:
          component: Of the pipeline.
          cached: Whether they are those of an earlier execution.
          elapsed_secs: Wall time.
        """

    def component_failed(self, component: BaseNode, elapsed_secs: float) -> None:
        """A component has raised."""
