"""Runs stock Transform with a result that does not depend on the engine."""

import contextlib
import copy
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import tensorflow as tf
import tfx_bsl.coders.batch_util  # noqa: F401  Defines the flag.
from absl import flags
from tfx.components.transform import executor, labels
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils
from tfx_bsl.tfxio import tf_example_record

from components.beam import in_memory_runner, record_files
from components.beam.beam_executor import BeamExecutor
from components.beam.example_batches import find_files
from components.transform import decoded_ahead
from components.transform.decoded_ahead import DecodedAhead
from components.transform.ordered_analysis import ordered_analysis
from components.transform.ordered_output import WriteInOrder
from components.transform.ordered_source import BATCH_KEY, OrderedExampleRecord
from components.transform.packs_key import PACKS_KEY
from components.user.code import importable_name, provide_tf_estimator

_BATCHING_FLAG = "tfxio_use_byte_size_batching"


class Executor(BeamExecutor, executor.Executor):
    """Stock Transform, whose result does not depend on the engine or on its workers and their speed.

    This applies to tf.Examples in TFRecord files. Other formats are read in batches of a fixed size.
    """

    # Transform imports the user's module, and so may a worker that unpickles a function of it.
    WORKER_MODULES = ("components.user.tf_estimator",)

    _processor: "OrderedTransformProcessor"

    def _make_beam_pipeline(self) -> beam.Pipeline:
        pipeline = super()._make_beam_pipeline()
        if in_memory_runner.install(pipeline):
            self._processor.decode_ahead()
        return pipeline

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        provide_tf_estimator()
        config = json.loads(exec_properties.get(standard_component_specs.CUSTOM_CONFIG_KEY) or "null")
        packs = (config or {}).get(PACKS_KEY, {})
        module_file = exec_properties.get(standard_component_specs.MODULE_FILE_KEY)
        if module_file and not exec_properties.get(standard_component_specs.MODULE_PATH_KEY):
            # TFX puts a module file into a wheel unless a RuntimeParameter names it. It imports such a file
            # as `user_module_0`, which no worker in another process can import.
            exec_properties = {
                **exec_properties,
                standard_component_specs.MODULE_FILE_KEY: None,
                standard_component_specs.MODULE_PATH_KEY: importable_name(io_utils.ensure_local(module_file)),
            }
        self._processor = OrderedTransformProcessor(packs)
        with (
            fixed_batches(),
            ordered_analysis(),
            _using(self._processor),
            contextlib.closing(self._processor),
        ):
            super().Do(input_dict, output_dict, exec_properties)
        for examples in output_dict.get(standard_component_specs.TRANSFORMED_EXAMPLES_KEY) or []:
            splits = artifact_utils.decode_split_names(examples.split_names)
            record_files.remove_unfinished(
                artifact_utils.get_split_uri([examples], split) for split in splits
            )


@contextlib.contextmanager
def fixed_batches() -> Iterator[None]:
    """Makes Beam pipelines that are built in this context read examples in batches of a fixed size.

    tfx-bsl lets Beam choose the size of each batch by the time that earlier batches took, so sums of floats
    over batches are rounded differently in each run. In this context a batch ends at 20 MiB of serialized
    examples or at 8,192 examples. A program that has set the flag on its own command line keeps its value.

    Source: `--tfxio_use_byte_size_batching` of tfx-bsl 1.21, which is read where a pipeline is built.
    """
    before = flags.FLAGS[_BATCHING_FLAG].default
    flags.FLAGS.set_default(_BATCHING_FLAG, True)
    try:
        yield
    finally:
        flags.FLAGS.set_default(_BATCHING_FLAG, before)


@contextlib.contextmanager
def _using(processor: executor.TransformProcessor) -> Iterator[None]:
    """Lets the stock executor use another object for its work; it has no argument for that."""
    stock = executor.TransformProcessor
    executor.TransformProcessor = lambda: processor
    try:
        yield
    finally:
        executor.TransformProcessor = stock


class OrderedTransformProcessor(executor.TransformProcessor):
    """Stock Transform's work, with our own source and output files for tf.Examples.

    Source: the private hooks of TransformProcessor in TFX 1.21.
    """

    def __init__(self, packs: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._packs = packs
        self._num_files: dict[str, int] = {}
        self._datasets: list[Any] = []
        self._schema: Any = None
        self._ahead: DecodedAhead | None = None

    def decode_ahead(self) -> None:
        """Begins to decode small files, once the data sets know which columns they need."""
        if not self._datasets or self._packs:
            return
        patterns = [pattern for dataset in self._datasets for pattern in _patterns(dataset)]
        paths = dict.fromkeys(find_files(patterns))
        if sum(tf.io.gfile.stat(path).length for path in paths) > decoded_ahead.MAX_FILE_BYTES:
            return
        names = {name for dataset in self._datasets for name in dataset.tfxio.ArrowSchema().names}
        schema = copy.deepcopy(self._schema)
        del schema.feature[:]
        schema.feature.extend(part for part in self._schema.feature if part.name in names)
        self._ahead = DecodedAhead(schema.SerializeToString(), list(paths))

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _CreateTFXIO(self, dataset: Any, schema: Any) -> Any:  # noqa: N802
        stock = super()._CreateTFXIO(dataset, schema)
        if type(stock) is not tf_example_record.TFExampleRecord:
            return stock
        patterns = _patterns(dataset)
        if dataset._materialize_output_path:
            self._num_files[dataset.materialize_output_path] = len(find_files(patterns))
        telemetry = stock.telemetry_descriptors
        if self._packs:
            # It imports estimator_core, which no other Transform needs.
            from components.transform.packed_source import PackedExampleRecord

            return PackedExampleRecord(patterns, schema, self._packs, telemetry)
        self._datasets.append(dataset)
        self._schema = schema
        return OrderedExampleRecord(
            patterns, schema=schema, telemetry_descriptors=telemetry, ahead=lambda: self._ahead
        )

    def _OptimizeRun(  # noqa: N802
        self,
        input_cache_dir: str | None,
        output_cache_dir: str | None,
        analyze_data_list: list[Any],
        *others: Any,
    ) -> beam.PTransform:
        def without_cache(pipeline: beam.Pipeline) -> tuple[dict[Any, Any], None, int]:
            # Beam looks for a runner's own implementation of a transform without steps.
            _ = pipeline | "None" >> beam.Create([])
            return {dataset.dataset_key: dataset for dataset in analyze_data_list[::-1]}, None, 0

        if input_cache_dir is None and output_cache_dir is None:
            # The stock step traces the user's code. The results are the data sets to analyze by key, no
            # cache, and no estimate of the stages.
            return beam.ptransform_fn(without_cache)()
        return super()._OptimizeRun(input_cache_dir, output_cache_dir, analyze_data_list, *others)

    @staticmethod
    def _GetTFXIOPassthroughKeys() -> set[str]:  # noqa: N802
        return {BATCH_KEY}

    def _EncodeAndWrite(  # noqa: N802
        self, schema: Any, file_format: str, output_path: str
    ) -> beam.PTransform:
        if file_format != labels.FORMAT_TFRECORD or output_path not in self._num_files:
            return super()._EncodeAndWrite(schema=schema, file_format=file_format, output_path=output_path)
        fileio.makedirs(os.path.dirname(output_path))
        return WriteInOrder(schema, output_path, self._num_files[output_path])


def _patterns(dataset: Any) -> list[str]:
    patterns = dataset.file_pattern
    return patterns if isinstance(patterns, list) else [patterns]
