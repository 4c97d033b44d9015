"""The Evaluator component."""

from collections.abc import Mapping

from tensorflow_model_analysis.proto import config_pb2
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ExecutionParameter
from tfx.utils import json_utils

from components.evaluator import executor
from components.evaluator.gate.default_checks import DefaultChecks


class EvaluatorSpec(standard_component_specs.EvaluatorSpec):
    """TFX's EvaluatorSpec, with the settings of the default checks."""

    PARAMETERS = {
        **standard_component_specs.EvaluatorSpec.PARAMETERS,
        executor.DEFAULT_CHECKS_KEY: ExecutionParameter(type=str, optional=True),
        executor.SAME_VALUES_KEY: ExecutionParameter(type=str, optional=True),
    }


class Evaluator(base_beam_component.BaseBeamComponent):
    """Evaluates a model with TFMA, per slice, and blesses it if it passes all thresholds.

    A model from a trainer_fn is evaluated on its evaluation model (`Format-TFMA`), which computes
    labels and predictions from the raw examples; so labels that `preprocessing_fn` derives need no
    raw column and no `label_key`. Any other model is evaluated as in stock TFX.

    Outputs:
        evaluation: `ModelEvaluation`, which TFMA's viewers read. Also holds `verdict.json`: the blessing,
            the metrics, the default checks, and a sentence for each failure (`load_verdict`).
        blessing: `ModelBlessing`, with the custom properties `blessed` (1 or 0), `held` (1 if the model
            passed but a doubt about the data holds it, so that `blessed` is 0), `blessing_message` and the
            ids of the models.

    Example:
        evaluator = Evaluator(
            examples=example_gen.outputs["examples"],
            model=trainer.outputs["model"],
            baseline_model=resolver.outputs["model"],
            schema=schema_gen.outputs["schema"],
            eval_config=EvalConfig(
                model_specs=[ModelSpec()],
                slicing_specs=[SlicingSpec(), SlicingSpec(feature_keys=["trip_start_hour"])],
                metrics_specs=[
                    MetricsSpec(
                        metrics=[
                            MetricConfig(
                                class_name="AUC",
                                threshold=MetricThreshold(
                                    value_threshold=GenericValueThreshold(lower_bound={"value": 0.6})
                                ),
                            )
                        ]
                    )
                ],
            ),
        )

    Source: TFX's Evaluator. Unlike it, this one evaluates Estimators by their evaluation models, writes a
    verdict, has default checks, and is faster. As in TFX, change thresholds do not apply without a
    baseline, and a model without any threshold or default check is not blessed.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel | None = None,
        eval_config: config_pb2.EvalConfig | None = None,
        schema: BaseChannel | None = None,
        example_splits: list[str] | None = None,
        default_checks: DefaultChecks | None = None,
        same_values: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Declares the component.

        Args:
            examples: Channel of raw `Examples`, from an ExampleGen.
            model: Channel of the `Model` to evaluate.
            baseline_model: Channel of the `Model` to compare with, such as the served one,
                from a Resolver.
            eval_config: TFMA's configuration: metrics, thresholds, slices.
            schema: Channel of the `Schema` of the examples. Default: types are inferred.
            example_splits: Splits to evaluate on. Default: `eval`.
            default_checks: Checks the model against the trivial one and the baseline as well.
                Default: only the thresholds of the eval_config apply, as in TFX.
            same_values: Values of text columns that the model takes as one, and so do the slices: the
                common name by value, without white space around it; "" is no value. Default: none.

        Raises:
            ValueError: There is no eval_config, or it has no metrics.
        """
        if eval_config is None or not any(spec.metrics for spec in eval_config.metrics_specs):
            raise ValueError(
                "Evaluator needs an eval_config with metrics, such as EvalConfig(metrics_specs="
                "[MetricsSpec(metrics=[MetricConfig(class_name='AUC')])]). "
                f"Received: eval_config={eval_config!r}"
            )
        spec = EvaluatorSpec(
            examples=examples,
            model=model,
            baseline_model=baseline_model,
            eval_config=eval_config,
            schema=schema,
            example_splits=json_utils.dumps(example_splits),
            fairness_indicator_thresholds=json_utils.dumps(None),
            **({executor.DEFAULT_CHECKS_KEY: default_checks.to_json()} if default_checks else {}),
            **({executor.SAME_VALUES_KEY: json_utils.dumps(same_values)} if same_values else {}),
            evaluation=Channel(type=standard_artifacts.ModelEvaluation),
            blessing=Channel(type=standard_artifacts.ModelBlessing),
        )
        super().__init__(spec=spec)
