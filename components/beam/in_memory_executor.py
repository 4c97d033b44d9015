"""The base of executors whose Beam pipelines run in this process, without copies, where that is possible."""

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor

from components.beam import in_memory_runner


class InMemoryExecutor(base_beam_executor.BaseBeamExecutor):
    """Makes Beam pipelines for `components.beam.in_memory_runner`; other engines run theirs as ever.

    Source: `_make_beam_pipeline` of TFX 1.21's executors.
    """

    def _make_beam_pipeline(self) -> beam.Pipeline:
        pipeline = super()._make_beam_pipeline()
        in_memory_runner.install(pipeline)
        return pipeline
