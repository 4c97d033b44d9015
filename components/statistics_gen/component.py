"""The StatisticsGen component."""

from typing import Any

from tfx.components.statistics_gen import component
from tfx.dsl.components.base import executor_spec
from tfx.types.channel import BaseChannel

from components.parsed_columns import ParsedColumns
from components.statistics_gen import executor

# After components.install(), TFX's module has our class instead of TFX's.
_TYPE: str = component.StatisticsGen.get_class_type()


class StatisticsGen(component.StatisticsGen):
    """TFX's StatisticsGen: the same arguments, channels, files and name in ML Metadata.

    Two differences: it reads tf.Examples in large batches whose contents depend only on the files, and it can
    describe the numbers and dates in columns of text, see `ParsedColumns`.

    Example:
        statistics_gen = StatisticsGen(examples=example_gen.outputs["examples"])
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel | None = None,
        stats_options: Any = None,
        exclude_splits: list[str] | None = None,
        parsed_columns: ParsedColumns | None = None,
    ) -> None:
        """Declares the component.

        Args:
            examples: See TFX's StatisticsGen.
            schema: See TFX's StatisticsGen.
            stats_options: See TFX's StatisticsGen.
            exclude_splits: See TFX's StatisticsGen.
            parsed_columns: Columns whose cells stand for numbers or dates. Default: none.
        """
        super().__init__(examples, schema, stats_options, exclude_splits)
        if parsed_columns is not None and parsed_columns.formats:
            # TFX's specification has no parameter for it; the compiler and the cache read this dict.
            self.exec_properties["parsed_columns"] = parsed_columns.to_json()

    @classmethod
    def get_class_type(cls) -> str:
        """Returns the name of the component in ML Metadata, that of TFX's own."""
        return _TYPE
