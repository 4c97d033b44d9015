"""Runs the components one after the other in this process.

The slow components form a chain: in `definitions/csv_to_serving.py`, only the two resolvers could run at the
same time as others, which would save less than 1 % of a run. Threads would have to share TFX's launcher and
ML Metadata's sqlite file, which are made for one thread. Only the process of the ServingCheck starts
early, and loads the model meanwhile.
"""

import contextlib
import itertools
from typing import TYPE_CHECKING

from pipelines.runners.runner import Runner

if TYPE_CHECKING:
    from pipelines.runners.component_launcher import ComponentLauncher


class LocalRunner(Runner):
    """Runs components in topological order, one at a time."""

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on."""
        from components.serving_check import model_process
        from components.serving_check.component import ServingCheck

        order = launcher.components
        try:
            for component, following in itertools.zip_longest(order, order[1:]):
                if isinstance(following, ServingCheck):
                    # `component` itself may be the one that makes the model.
                    with contextlib.suppress(LookupError):
                        model_process.prepare(launcher.artifact(following.inputs["model"]))
                launcher.run(component)
        finally:
            model_process.discard()
