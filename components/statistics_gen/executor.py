"""Runs stock StatisticsGen on large batches of examples."""

import contextlib
from collections.abc import Iterator
from typing import Any

from tfx.components.statistics_gen import executor
from tfx.components.util import tfxio_utils
from tfx.types.artifact import Artifact
from tfx_bsl.tfxio import tf_example_record

from components.beam.beam_executor import InMemoryExecutor
from components.beam.example_batches import BatchedExampleRecord


class Executor(InMemoryExecutor, executor.Executor):
    """Stock StatisticsGen, which reads tf.Examples in TFRecord files in large batches.

    Other formats are read as in stock TFX: record by record.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Runs the component; the arguments are those of its ComponentSpec."""
        with _large_batches():
            super().Do(input_dict, output_dict, exec_properties)


@contextlib.contextmanager
def _large_batches() -> Iterator[None]:
    """Lets the stock executor read tf.Examples by another class; it has no argument for that."""
    before = tfxio_utils.get_split_tfxio

    def get_split_tfxio(**arguments: Any) -> Any:
        stock = before(**arguments)
        if type(stock) is not tf_example_record.TFExampleRecord:
            return stock
        return BatchedExampleRecord(
            stock._file_pattern,  # noqa: SLF001  (given nowhere else)
            schema=arguments["schema"],
            telemetry_descriptors=arguments["telemetry_descriptors"],
        )

    tfxio_utils.get_split_tfxio = get_split_tfxio
    try:
        yield
    finally:
        tfxio_utils.get_split_tfxio = before
