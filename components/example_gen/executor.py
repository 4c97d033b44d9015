"""Splits the rows of CSV files, and spreads copies of a row over the splits, too."""

import itertools
import math
import os
from typing import Any

import apache_beam as beam
from google.protobuf import struct_pb2
from tfx.components.example_gen import utils, write_split
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import proto_utils

from components.beam import record_files
from components.beam.beam_executor import BeamExecutor
from components.example_gen.files import PlannedFiles, find_files
from components.example_gen.reading import num_bytes, read_batches
from components.example_gen.row_files import WriteRows

TEXT_COLUMNS_KEY = "text_columns"
"""Key of the text columns in the component's `custom_config`."""

FLOAT_COLUMNS_KEY = "float_columns"
"""Key of the columns that are float32 even if their cells are integers."""

COLUMN_TYPES_KEY = "column_types"
"""Key of the types of the columns by their cells, as texts such as `n=float`."""

NO_GROUPS_KEY = "no_groups"
"""Key of the texts in the split column that stand for a missing value."""

CSV_BYTES_PER_FILE = 16 << 20
"""Bytes of CSV for each file of a split. One worker holds the rows of one file in memory."""


class Executor(BeamExecutor):
    """Reads CSV files, and splits by row and number of its copy, or by the value of a column.

    The files that it writes depend on the contents and the number of the rows alone, see `WriteRows`.

    Source: TFX's CsvExampleGen. There the split depends on the row's hash alone, so all copies of a row are
    in the same split. A row without copies is in the same split here as there, and so are rows that are split
    by a column; in TFX the column must have integers or text and a value in every row, while here rows
    without a value form a group.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        self._log_startup(input_dict, output_dict, exec_properties)
        source, output = _source(exec_properties), _output(exec_properties)
        if output.split_config.splits and len(source.splits) != 1:
            raise ValueError(
                "output_config.split_config divides one input split. Received: "
                f"{len(source.splits)} input splits ({', '.join(s.name for s in source.splits)})"
            )
        examples = artifact_utils.get_single_instance(output_dict[standard_component_specs.EXAMPLES_KEY])
        names = utils.generate_output_split_names(source, output)
        examples.split_names = artifact_utils.encode_split_names(names)
        folders = {name: artifact_utils.get_split_uri([examples], name) for name in names}
        for folder in folders.values():
            fileio.makedirs(folder)
        planned = PlannedFiles(  # without a fingerprint, the files as they are now
            exec_properties[standard_component_specs.INPUT_BASE_KEY],
            [split.pattern for split in source.splits],
            exec_properties.get(utils.FINGERPRINT_PROPERTY_NAME),
        )
        planned.check_names()
        try:
            with self._make_beam_pipeline() as pipeline:
                self._write(pipeline, exec_properties, folders, planned)
        except Exception:
            planned.check_contents()  # rows of a file that has changed may not even have the same columns
            raise
        finally:
            record_files.remove_unfinished(folders.values())
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples_utils.set_file_format(
            examples, write_split.to_file_format_str(example_gen_pb2.FORMAT_TFRECORDS_GZIP)
        )

    def _write(
        self,
        pipeline: beam.Pipeline,
        exec_properties: dict[str, Any],
        folders: dict[str, str],
        planned: PlannedFiles,
    ) -> None:
        folder = exec_properties[standard_component_specs.INPUT_BASE_KEY]
        patterns = {split.name: split.pattern for split in _source(exec_properties).splits}
        parts = read_batches(
            pipeline,
            folder,
            patterns,
            _columns(exec_properties, TEXT_COLUMNS_KEY),
            _columns(exec_properties, FLOAT_COLUMNS_KEY),
            planned,
            _column_types(exec_properties),
        )
        config = _output(exec_properties).split_config
        for name, part in parts.items():
            # Without split_config, an input split stays as it is.
            csv_bytes = num_bytes(find_files(folder, patterns[name]))
            shares = {split.name: split.hash_buckets for split in config.splits} or {name: 1}
            _ = part | f"Write[{name}]" >> WriteRows(
                [os.path.join(folders[split], write_split.DEFAULT_TF_RECORD_FILE_NAME) for split in shares],
                list(itertools.accumulate(shares.values())),
                (config.partition_feature_name, _columns(exec_properties, NO_GROUPS_KEY)),
                num_files=max(1, math.ceil(csv_bytes / CSV_BYTES_PER_FILE)),
            )


def _source(exec_properties: dict[str, Any]) -> example_gen_pb2.Input:
    source = exec_properties[standard_component_specs.INPUT_CONFIG_KEY]
    return proto_utils.json_to_proto(source, example_gen_pb2.Input())


def _output(exec_properties: dict[str, Any]) -> example_gen_pb2.Output:
    output = exec_properties[standard_component_specs.OUTPUT_CONFIG_KEY]
    return proto_utils.json_to_proto(output, example_gen_pb2.Output())


def _column_types(exec_properties: dict[str, Any]) -> dict[str, str]:
    items = (item.rpartition("=") for item in _columns(exec_properties, COLUMN_TYPES_KEY))
    return {name: column_type for name, _, column_type in items}


def _columns(exec_properties: dict[str, Any], key: str) -> list[str]:
    custom_config = exec_properties.get(standard_component_specs.CUSTOM_CONFIG_KEY)
    if not custom_config:
        return []
    settings = struct_pb2.Struct()
    proto_utils.json_to_proto(custom_config, example_gen_pb2.CustomConfig()).custom_config.Unpack(settings)
    return list(settings[key]) if key in settings else []
