"""Runs stock Transform over batches of a fixed size."""

from typing import Any

from tfx.components.transform import executor
from tfx.types.artifact import Artifact

from components.transform.fixed_batches import fixed_batches


class Executor(executor.Executor):
    """Stock Transform, whose sums and quantiles do not depend on how long its batches took."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Runs the component; arguments are those of its ComponentSpec."""
        with fixed_batches():
            super().Do(input_dict, output_dict, exec_properties)
