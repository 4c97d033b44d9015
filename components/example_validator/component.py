"""The ExampleValidator component."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.example_validator import executor
from components.example_validator.validation import DriftLimits


class ExampleValidatorSpec(ComponentSpec):
    PARAMETERS = {
        "exclude_splits": ExecutionParameter(type=str, optional=True),
        "label": ExecutionParameter(type=str, optional=True),
        "limits": ExecutionParameter(type=str, optional=True),
        "moving": ExecutionParameter(type=str, optional=True),
        "fixed_schema": ExecutionParameter(type=int, optional=True),
    }
    INPUTS = {
        "statistics": ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "schema": ChannelParameter(type=standard_artifacts.Schema),
        "baseline_statistics": ChannelParameter(
            type=standard_artifacts.ExampleStatistics, optional=True, allow_empty=True
        ),
    }
    OUTPUTS = {"anomalies": ChannelParameter(type=standard_artifacts.ExampleAnomalies)}


class ExampleValidator(base_component.BaseComponent):
    """Compares the statistics of new data with a schema, and with the statistics of other data.

    `outputs['anomalies']` has a `SchemaDiff.pb` for each split, TFDV's `Anomalies`. Anomalies that make
    training meaningless have the severity ERROR, others WARNING: see
    `components.example_validator.validation.validate`.

    Example:
        example_validator = ExampleValidator(
            statistics=statistics_gen.outputs["statistics"],
            schema=schema_gen.outputs["schema"],
            baseline_statistics=served_statistics.outputs["statistics"],
            label="tips",
        )

    Source: TFX's ExampleValidator. Unlike TFX's, it has severities and finds drift.
    """

    SPEC_CLASS = ExampleValidatorSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        statistics: BaseChannel,
        schema: BaseChannel,
        exclude_splits: Sequence[str] | None = None,
        custom_validation_config: object | None = None,
        baseline_statistics: BaseChannel | None = None,
        label: str | None = None,
        limits: DriftLimits | None = None,
        moving: Sequence[str] = (),
        fixed_schema: bool = False,
    ) -> None:
        """Declares the component.

        Args:
            statistics: Channel of `ExampleStatistics`, from a StatisticsGen.
            schema: Channel of the `Schema` for the data.
            exclude_splits: Splits to skip. Default: none.
            custom_validation_config: Refused: TFX 1.15's checks in SQL.
            baseline_statistics: Channel of the `ExampleStatistics` to compare with, such as those of the
                run that made the served model. Without it, or if the channel has no artifact, drift is
                not checked.
            label: Column of the label, in which every anomaly is an ERROR.
            limits: Limits of drift. Default: `DriftLimits()`.
            moving: Columns with new values in each data set, such as times and counters: they are
                compared with the schema alone.
            fixed_schema: True if the schema was written for all data, rather than inferred from these data:
                values that it allows are valid even if `baseline_statistics` differ.

        Raises:
            ValueError: There is a custom_validation_config.
        """
        if custom_validation_config is not None:
            raise ValueError(
                "ExampleValidator can't run a custom_validation_config: tfx-bsl no longer has the SQL engine "
                "for it. Put ranges, domains and presence into the schema, or use limits=DriftLimits(). "
                f"Received: custom_validation_config={custom_validation_config!r}"
            )
        super().__init__(
            spec=ExampleValidatorSpec(
                statistics=statistics,
                schema=schema,
                baseline_statistics=baseline_statistics,
                exclude_splits=json.dumps(list(exclude_splits or ())),
                label=label,
                limits=json.dumps(asdict(limits or DriftLimits())),
                moving=json.dumps(list(moving)),
                fixed_schema=int(fixed_schema),
                anomalies=Channel(type=standard_artifacts.ExampleAnomalies),
            )
        )
