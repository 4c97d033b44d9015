"""Runs the components one after the other in this process."""

from typing import TYPE_CHECKING

from pipelines.runners.runner import Runner

if TYPE_CHECKING:
    from pipelines.runners.component_launcher import ComponentLauncher


class LocalRunner(Runner):
    """The order is the topological one; nothing runs at the same time."""

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on."""
        for component in launcher.components:
            launcher.run(component)
