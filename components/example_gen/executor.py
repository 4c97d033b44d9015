"""Splits the rows of CSV files so that copies of a row spread over the splits, too."""

import bisect
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import tensorflow as tf
from tfx.components.example_gen.csv_example_gen import executor as csv_executor
from tfx.proto import example_gen_pb2
from tfx.types import standard_component_specs
from tfx.utils import proto_utils


class Executor(csv_executor.Executor):
    """Reads as TFX's executor does, and splits by row and number of its copy.

    Source: TFX's CsvExampleGen. There a row's hash alone says into which split it goes, so that all
    copies of a row fall into one. A row without copies falls into the same split here as there, and
    stays in it when others are added.
    """

    def GenerateExamplesByBeam(  # noqa: N802 - TFX's name
        self, pipeline: beam.Pipeline, exec_properties: dict[str, Any]
    ) -> dict[str, beam.PCollection]:
        """Returns the serialized tf.Examples of each split."""
        output = example_gen_pb2.Output()
        proto_utils.json_to_proto(
            exec_properties[standard_component_specs.OUTPUT_CONFIG_KEY], output
        )
        config = output.split_config
        if not config.splits or config.partition_feature_name:
            return super().GenerateExamplesByBeam(pipeline, exec_properties)
        source = example_gen_pb2.Input()
        proto_utils.json_to_proto(
            exec_properties[standard_component_specs.INPUT_CONFIG_KEY], source
        )
        read = self.GetInputSourceToExamplePTransform()
        bounds = list(itertools.accumulate(split.hash_buckets for split in config.splits))
        parts = (
            pipeline
            | "ReadRows" >> read(exec_properties, source.splits[0].pattern)
            | "Serialize" >> beam.Map(_serialize)
            | "CountCopies" >> beam.combiners.Count.PerElement()
            | "NumberCopies" >> beam.FlatMap(_number_copies)
            | "Split" >> beam.Partition(_split_of, len(bounds), bounds)
        )
        return {
            split.name: part | f"Rows[{split.name}]" >> beam.Keys()
            for split, part in zip(config.splits, parts, strict=True)
        }


def _serialize(example: tf.train.Example) -> bytes:
    return example.SerializeToString(deterministic=True)


def _number_copies(counted: tuple[bytes, int]) -> Iterator[tuple[bytes, int]]:
    row, count = counted
    for number in range(count):
        yield row, number


def _split_of(copy: tuple[bytes, int], num_splits: int, bounds: list[int]) -> int:
    """Returns the index of the split whose share of the hash buckets a copy falls into."""
    del num_splits
    row, number = copy
    digest = hashlib.sha256(row)
    if number:
        digest.update(b"copy %d" % number)
    return bisect.bisect(bounds, int.from_bytes(digest.digest(), "big") % bounds[-1])
