"""Runs the components one after the other in this process."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.beam.config import BeamConfig

if TYPE_CHECKING:
    from pipelines.runners.component_launcher import ComponentLauncher


class LocalRunner:
    """The order is the topological one; nothing runs at the same time."""

    def check(self, config: BeamConfig) -> None:
        """Takes any configuration: Beam works in this process, whatever engine it names."""

    @contextlib.contextmanager
    def beam_options(self, config: BeamConfig, root: Path) -> Iterator[tuple[str, ...]]:
        """Yields those that the configuration gives by themselves."""
        yield config.args

    def run(self, launcher: "ComponentLauncher") -> None:
        """Runs each component once, after all those that it depends on."""
        for component in launcher.components:
            launcher.run(component)
