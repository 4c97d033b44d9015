"""Runs the components one after the other in this process.

Those that take time wait for each other, down to the last: `definitions/csv_to_serving.py` leaves only
the two resolvers to run beside others, less than a hundredth of a run. Threads for that would have to
share TFX's launcher and ML Metadata's sqlite file, which are made for one.
"""

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
