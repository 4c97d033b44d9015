"""The CsvExampleGen component."""

from collections.abc import Mapping, Sequence

from google.protobuf import struct_pb2
from tfx.components.example_gen import component, utils
from tfx.dsl.components.base import executor_spec
from tfx.proto import example_gen_pb2

from components.example_gen import driver, executor
from components.example_gen.files import as_fingerprint


class CsvExampleGen(component.FileBasedExampleGen):
    """Converts CSV files to tf.Examples, in place of TFX's CsvExampleGen.

    A file whose name ends in `.gz`, `.zst` or `.bz2` is unpacked while it is read. One that ends in
    `.parquet` is read as the CSV that pyarrow writes of it, except that its columns keep their types.

    It differs in four points: copies of a row spread over the splits, a column has one type in all input
    splits, there are `text_columns` and `float_columns`, and the rows of its files and their order depend on
    the contents of the rows alone. TFX shuffles them at random.

    Args:
        input_base: Folder of the CSV files.
        input_config: Patterns of the files. Default: all files, as one split. Several input splits are kept
            as they are.
        output_config: Division of a single input split. Default: train and eval, 2 to 1. With a
            `partition_feature_name`, all rows with the same value in that column fall into one split.
        range_config: Range of spans.
        text_columns: Columns that are text even if their cells are numbers, so that `02134` keeps its zero.
            Default: none; a column of integers is int64, one of other numbers float32.
        float_columns: Columns that are float32 even if all their cells are integers, for example because
            other data of the same pipeline have fractions. Default: none.
        column_types: Type of each column, if the files have been read before: `empty`, `integer`, `float` or
            `text`. It has to hold all cells. Default: the files are read once more to find the types.
        no_groups: Values of the column `partition_feature_name` that stand for a missing value, such as `NA`:
            their rows are split row by row. Default: only rows without a value are.
        files: SHA-256 of each file in hexadecimal digits, by its path relative to `input_base`. These files
            are read, with this content, or the component fails. Default: the files that its driver finds.

    Example:
          example_gen = CsvExampleGen(input_base="data/", text_columns=["zip"])
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.ContentDriver

    def __init__(
        self,
        input_base: str | None = None,
        input_config: example_gen_pb2.Input | None = None,
        output_config: example_gen_pb2.Output | None = None,
        range_config: object | None = None,
        text_columns: Sequence[str] = (),
        float_columns: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        column_types: Mapping[str, str] | None = None,
        no_groups: Sequence[str] = (),
    ):
        custom_config = None
        columns_by_key = {
            executor.TEXT_COLUMNS_KEY: list(text_columns),
            executor.FLOAT_COLUMNS_KEY: list(float_columns),
            executor.NO_GROUPS_KEY: list(no_groups),
            executor.COLUMN_TYPES_KEY: [
                f"{name}={column_type}" for name, column_type in (column_types or {}).items()
            ],
        }
        if any(columns_by_key.values()):
            settings = struct_pb2.Struct()
            settings.update({key: columns for key, columns in columns_by_key.items() if columns})
            custom_config = example_gen_pb2.CustomConfig()
            custom_config.custom_config.Pack(settings)
        super().__init__(
            input_base=input_base,
            input_config=input_config,
            output_config=output_config,
            custom_config=custom_config,
            range_config=range_config,
        )
        if files:
            self.spec.exec_properties[utils.FINGERPRINT_PROPERTY_NAME] = as_fingerprint(files)
