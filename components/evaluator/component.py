"""The Evaluator component."""

from collections.abc import Mapping

from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.utils import config_util
from tfx.components.util import udf_utils
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import evaluator_pb2
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

    Source: TFX's Evaluator. Unlike TFX's, it evaluates Estimators by their evaluation models, writes a
    verdict, has default checks, and is faster. As in TFX, change thresholds do not apply without a
    baseline, and a model without any threshold or default check is not blessed. A threshold that no metric
    belongs to is an error, which TFX reports as a model that is not blessed.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel | None = None,
        baseline_model: BaseChannel | None = None,
        feature_slicing_spec: evaluator_pb2.FeatureSlicingSpec | RuntimeParameter | None = None,
        fairness_indicator_thresholds: list[float] | RuntimeParameter | None = None,
        example_splits: list[str] | None = None,
        eval_config: config_pb2.EvalConfig | None = None,
        schema: BaseChannel | None = None,
        module_file: str | None = None,
        module_path: str | None = None,
        default_checks: DefaultChecks | None = None,
        same_values: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Declares the component.

        Args:
            examples: Channel of raw `Examples`, from an ExampleGen.
            model: Channel of the `Model` to evaluate; required.
            baseline_model: Channel of the `Model` to compare with, such as the served one,
                from a Resolver.
            feature_slicing_spec: Slices, instead of an eval_config; the metrics are the model's own.
            fairness_indicator_thresholds: Thresholds of probabilities at which false positive rates and so
                on are computed, named as by TFMA's FairnessIndicators.
            example_splits: Splits to evaluate on. Default: `eval`.
            eval_config: TFMA's configuration: metrics, thresholds, slices. A threshold without a metric is
                for the model's own metric of this name, or else for TFMA's.
            schema: Channel of the `Schema` of the examples. Default: types are inferred.
            module_file: Path of a Python file, which may define `custom_eval_shared_model` and
                `custom_extractors` as for stock TFX, and metrics that the eval_config names. With either
                function, the serving model is evaluated.
            module_path: Import path of such a module, instead of module_file.
            default_checks: Checks the model against the trivial one and the baseline as well.
                Default: only the thresholds of the eval_config apply, as in TFX.
            same_values: Values of text columns that the model and the slices treat as equal: the common
                name by value, without white space around it; "" is a missing value. Default: none.

        Raises:
            ValueError: There is no model, there is nothing to evaluate, or arguments contradict each other.
        """
        if model is None:
            raise ValueError(
                "Evaluator needs a model. To evaluate predictions that are columns of the examples, call "
                "tfma.run_model_analysis with ModelSpec(prediction_key=...)."
            )
        if module_file and module_path:
            raise ValueError(
                "Evaluator takes module_file or module_path, not both. "
                f"Received: module_file={module_file!r}, module_path={module_path!r}"
            )
        if eval_config is not None and feature_slicing_spec is not None:
            raise ValueError(
                "Evaluator takes eval_config or feature_slicing_spec, not both: set slicing_specs of the "
                "eval_config instead."
            )
        if not (eval_config and eval_config.ListFields()) and feature_slicing_spec is None:
            raise ValueError(
                "Evaluator needs an eval_config with metrics, such as EvalConfig(metrics_specs="
                "[MetricsSpec(metrics=[MetricConfig(class_name='AUC')])]). For the metrics of the evaluation "
                "model itself: EvalConfig(model_specs=[ModelSpec(signature_name='eval')]). "
                f"Received: eval_config={eval_config!r}"
            )
        if eval_config is not None:
            _check_eval_config(eval_config, has_baseline=baseline_model is not None)
        if not isinstance(fairness_indicator_thresholds, RuntimeParameter):
            fairness_indicator_thresholds = json_utils.dumps(fairness_indicator_thresholds)
        spec = EvaluatorSpec(
            examples=examples,
            model=model,
            baseline_model=baseline_model,
            feature_slicing_spec=feature_slicing_spec,
            fairness_indicator_thresholds=fairness_indicator_thresholds,
            example_splits=json_utils.dumps(example_splits),
            eval_config=eval_config,
            schema=schema,
            module_file=module_file,
            module_path=module_path,
            **({executor.DEFAULT_CHECKS_KEY: default_checks.to_json()} if default_checks else {}),
            **({executor.SAME_VALUES_KEY: json_utils.dumps(same_values)} if same_values else {}),
            evaluation=Channel(type=standard_artifacts.ModelEvaluation),
            blessing=Channel(type=standard_artifacts.ModelBlessing),
        )
        super().__init__(spec=spec)
        if module_file and udf_utils.should_package_user_modules():
            udf_utils.add_user_module_dependency(
                self, standard_component_specs.MODULE_FILE_KEY, standard_component_specs.MODULE_PATH_KEY
            )


def _check_eval_config(eval_config: config_pb2.EvalConfig, *, has_baseline: bool) -> None:
    slicing_specs = list(eval_config.slicing_specs)
    for cross in eval_config.cross_slicing_specs:
        slicing_specs += [cross.baseline_spec, *cross.slicing_specs]
    # Without the library that evaluates SQL, such a slice would be all examples.
    if sql := next((spec.slice_keys_sql for spec in slicing_specs if spec.slice_keys_sql), None):
        raise ValueError(
            "The Evaluator can't slice by SQL, whose library is no longer part of tfx-bsl. Slice by columns: "
            f"SlicingSpec(feature_keys=[...]) or feature_values. Received: slice_keys_sql={sql!r}"
        )
    specs = eval_config.model_specs
    names = [spec.name for spec in specs]
    baselines = [spec.name for spec in specs if spec.is_baseline]
    if specs and (len(baselines) > 1 or len(baselines) == len(specs)):
        raise ValueError(
            "model_specs of an EvalConfig has a ModelSpec for the model, and at most one with "
            f"is_baseline=True. Received: {len(specs)} in all, with is_baseline=True: {baselines}"
        )
    if len(specs) - len(baselines) < 2:
        return
    if "" in names or len(set(names)) < len(names):
        raise ValueError(
            "Each of several ModelSpecs in model_specs of an EvalConfig needs its own name. "
            f"Received: names {names}"
        )
    if eval_specs := [spec.name for spec in specs if spec.signature_name == "eval"]:
        raise ValueError(
            "An evaluation model (signature_name='eval') is evaluated under one ModelSpec of the model. Name "
            "signatures of the serving model in model_specs, or use an Evaluator for each ModelSpec. "
            f"Received: signature_name='eval' in {eval_specs}, among {names}"
        )
    unweighted = [s.name for s in specs if not (s.example_weight_key or s.example_weight_keys)]
    if 0 < len(unweighted) < len(specs):
        raise ValueError(
            "TFMA weighs the examples under all of several ModelSpecs, or under none: set "
            f"example_weight_key in each of model_specs. Received: none in {unweighted}, among {names}"
        )
    for metrics_spec in eval_config.metrics_specs:
        if unknown := sorted(set(metrics_spec.model_names) - {*names}):
            raise ValueError(
                f"model_names of a MetricsSpec takes names of model_specs: {', '.join(names)}. "
                f"Received: {', '.join(unknown)}"
            )
    if has_baseline and not baselines and config_util.has_change_threshold(eval_config):
        raise ValueError(
            "A change_threshold compares with the baseline, and several ModelSpecs leave open how the "
            "baseline is evaluated. Add one to model_specs: ModelSpec(name='baseline', is_baseline=True), "
            f"with its signature_name and label_key. Received: names {names}"
        )
