"""Splits the rows of CSV files so that copies of a row spread over the splits, too."""

import bisect
import hashlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import tensorflow as tf
from google.protobuf import struct_pb2
from tfx.components.example_gen import utils, write_split
from tfx.components.example_gen.csv_example_gen import executor as csv_executor
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import proto_utils

from components.example_gen.reading import read_examples

TEXT_COLUMNS_KEY = "text_columns"
"""Where the columns that stay text lie in the component's `custom_config`."""

FLOAT_COLUMNS_KEY = "float_columns"
"""The same for columns that are float32 though their cells are integers."""


class Executor(csv_executor.Executor):
    """Reads CSV files, and splits by row and number of its copy, or by the value of a column.

    Source: TFX's CsvExampleGen. There a row's hash alone says into which split it goes, so that all
    copies of a row fall into one. A row without copies falls into the same split here as there, and
    stays in it when others are added. So do rows that are split by a column; there the column must
    be of integers or text and have a value in every row, while here a row without one is split by
    itself.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the tf.Examples of each split.

        TFX shuffles them first. Its shuffle leaves the rows of one worker in their order, except for those
        few that draw the same random number, so that each run may write another order.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        examples = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.EXAMPLES_KEY]
        )
        examples.split_names = artifact_utils.encode_split_names(
            utils.generate_output_split_names(_source(exec_properties), _output(exec_properties))
        )
        with self._make_beam_pipeline() as pipeline:
            for split, rows in self.GenerateExamplesByBeam(pipeline, exec_properties).items():
                path = os.path.join(
                    artifact_utils.get_split_uri([examples], split),
                    write_split.DEFAULT_TF_RECORD_FILE_NAME,
                )
                _ = rows | f"WriteSplit[{split}]" >> beam.io.WriteToTFRecord(
                    path, file_name_suffix=".gz"
                )
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples_utils.set_file_format(
            examples, write_split.to_file_format_str(example_gen_pb2.FORMAT_TFRECORDS_GZIP)
        )

    def GenerateExamplesByBeam(  # noqa: N802 - TFX's name
        self, pipeline: beam.Pipeline, exec_properties: dict[str, Any]
    ) -> dict[str, beam.PCollection]:
        """Returns the serialized tf.Examples of each split."""
        parts = {
            name: examples | f"Serialize[{name}]" >> beam.Map(_serialize)
            for name, examples in read_examples(
                pipeline,
                exec_properties[standard_component_specs.INPUT_BASE_KEY],
                {split.name: split.pattern for split in _source(exec_properties).splits},
                _columns(exec_properties, TEXT_COLUMNS_KEY),
                _columns(exec_properties, FLOAT_COLUMNS_KEY),
            ).items()
        }
        config = _output(exec_properties).split_config
        if not config.splits:
            return parts
        if len(parts) != 1:
            raise ValueError(
                "output_config.split_config divides one input split. "
                f"Received: {len(parts)} input splits ({', '.join(parts)})"
            )
        (rows,) = parts.values()
        bounds = list(itertools.accumulate(split.hash_buckets for split in config.splits))
        divided = (
            rows
            | "CountCopies" >> beam.combiners.Count.PerElement()
            | "NumberCopies" >> beam.FlatMap(_number_copies)
            | "Split"
            >> beam.Partition(_split_of, len(bounds), bounds, config.partition_feature_name)
        )
        return {
            split.name: part | f"Rows[{split.name}]" >> beam.Keys()
            for split, part in zip(config.splits, divided, strict=True)
        }


def _source(exec_properties: dict[str, Any]) -> example_gen_pb2.Input:
    source = example_gen_pb2.Input()
    proto_utils.json_to_proto(exec_properties[standard_component_specs.INPUT_CONFIG_KEY], source)
    return source


def _output(exec_properties: dict[str, Any]) -> example_gen_pb2.Output:
    output = example_gen_pb2.Output()
    proto_utils.json_to_proto(exec_properties[standard_component_specs.OUTPUT_CONFIG_KEY], output)
    return output


def _columns(exec_properties: dict[str, Any], key: str) -> list[str]:
    given = exec_properties.get(standard_component_specs.CUSTOM_CONFIG_KEY)
    if not given:
        return []
    config, settings = example_gen_pb2.CustomConfig(), struct_pb2.Struct()
    proto_utils.json_to_proto(given, config)
    config.custom_config.Unpack(settings)
    return list(settings[key]) if key in settings else []


def _serialize(example: tf.train.Example) -> bytes:
    return example.SerializeToString(deterministic=True)


def _number_copies(counted: tuple[bytes, int]) -> Iterator[tuple[bytes, int]]:
    row, count = counted
    for number in range(count):
        yield row, number


def _split_of(copy: tuple[bytes, int], num_splits: int, bounds: list[int], column: str) -> int:
    """Returns the index of the split whose share of the hash buckets a copy falls into.

    Args:
      copy: A serialized row, and the number of the copy.
      num_splits: Number of splits.
      bounds: Hash buckets below each split's end.
      column: All rows with one value in it fall into one split; empty to split row by row.
    """
    del num_splits
    row, number = copy
    group = _group(row, column) if column else b""
    digest = hashlib.sha256(group or row)
    if number and not group:
        digest.update(b"copy %d" % number)
    return bisect.bisect(bounds, int.from_bytes(digest.digest(), "big") % bounds[-1])


def _group(row: bytes, column: str) -> bytes:
    """Returns the value of a row's column, serialized; empty when it has none.

    Raises:
      ValueError: There is no such column.
    """
    features = tf.train.Example.FromString(row).features.feature
    if column not in features:
        raise ValueError(
            f"There is no column to split by. Received: partition_feature_name={column!r}. "
            f"Columns: {', '.join(sorted(features))}"
        )
    feature = features[column]
    kind = feature.WhichOneof("kind")
    if kind is None or not getattr(feature, kind).value:
        return b""
    if kind == "bytes_list":  # white space around a value makes no other group of it
        feature.bytes_list.value[0] = feature.bytes_list.value[0].strip()
        if not feature.bytes_list.value[0]:
            return b""
    return bytes(feature.SerializeToString(deterministic=True))
