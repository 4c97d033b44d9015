"""The CsvExampleGen component."""

from tfx.components.example_gen.csv_example_gen import component
from tfx.dsl.components.base import executor_spec

from components.example_gen import executor


class CsvExampleGen(component.CsvExampleGen):
    """TFX's CsvExampleGen; it differs in spreading the copies of a row over the splits.

    Example:
        example_gen = CsvExampleGen(input_base="data/")
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
