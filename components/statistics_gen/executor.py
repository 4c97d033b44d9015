"""Runs stock StatisticsGen on large batches of examples, with the values of parsed columns."""

import contextlib
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.components.statistics_gen import executor
from tfx.components.util import tfxio_utils
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils
from tfx_bsl.tfxio import tf_example_record

from components.beam.beam_executor import InMemoryExecutor
from components.beam.example_batches import BatchedExampleRecord
from components.parsed_columns import ParsedColumns


class Executor(InMemoryExecutor, executor.Executor):
    """Stock StatisticsGen, which reads tf.Examples in TFRecord files in large batches.

    Other formats are read record by record, as in stock TFX.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        settings = exec_properties.get("parsed_columns")
        parsed = ParsedColumns.from_json(settings) if settings else None
        with _batches(parsed):
            super().Do(input_dict, output_dict, exec_properties)
        if parsed is None:
            return
        (artifact,) = output_dict["statistics"]
        for split in artifact_utils.decode_split_names(artifact.split_names):
            file = f"{artifact_utils.get_split_uri([artifact], split)}/{executor.DEFAULT_FILE_NAME}"
            with fileio.open(file, "rb") as stream:
                content = stream.read()
            statistics = statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
            parsed.nest(statistics)
            io_utils.write_bytes_file(file, statistics.SerializeToString())


@contextlib.contextmanager
def _batches(parsed: ParsedColumns | None) -> Iterator[None]:
    """Lets the stock executor read other batches; it has no argument for that."""
    stock = tfxio_utils.get_split_tfxio

    def get_split_tfxio(**arguments: Any) -> Any:
        tfxio = stock(**arguments)
        if type(tfxio) is tf_example_record.TFExampleRecord:
            tfxio = BatchedExampleRecord(
                tfxio._file_pattern,  # noqa: SLF001  (given nowhere else)
                schema=arguments["schema"],
                telemetry_descriptors=arguments["telemetry_descriptors"],
            )
        return tfxio if parsed is None else _WithValues(tfxio, parsed)

    tfxio_utils.get_split_tfxio = get_split_tfxio
    try:
        yield
    finally:
        tfxio_utils.get_split_tfxio = stock


class _WithValues:
    """Adds the values of parsed columns to the batches of another source."""

    def __init__(self, tfxio: Any, parsed: ParsedColumns):
        self._tfxio = tfxio
        self._parsed = parsed

    def BeamSource(self) -> beam.PTransform:  # noqa: N802
        values = beam.Map(self._parsed.add_values).with_output_types(pa.RecordBatch)

        def source(pipeline: Any) -> Any:
            return pipeline | self._tfxio.BeamSource() | "ParsedColumns" >> values

        return beam.ptransform_fn(source)()
