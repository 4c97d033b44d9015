"""Completes an EvalConfig: defaults, the arguments of TFX's Evaluator, and thresholds without a metric.

Until TFMA 0.46, `MetricsSpec.thresholds` without `metrics` referred to metrics that were saved with the
model. TFMA 0.52 no longer computes these, so that a model with such a threshold would never be blessed.
"""

import contextlib
import copy
import functools
import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_model_analysis.metrics import confusion_matrix_metrics, metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.utils import config_util
from tensorflow_model_analysis.utils.keras_lib import tf_keras
from tfx.proto import evaluator_pb2

from components.errors import SettingError
from components.evaluator.metrics.eval_model import EvalGraph
from components.evaluator.metrics.model_metrics import ModelMetrics
from components.evaluator.metrics.sklearn_metrics import SklearnMetric
from components.nearest import nearest_first

_FAIRNESS_METRICS = {
    "false_positive_rate": "FPR",
    "false_negative_rate": "FNR",
    "true_positive_rate": "TPR",
    "true_negative_rate": "TNR",
    "positive_rate": "PredictedPositiveRate",
    "false_discovery_rate": "FalseDiscoveryRate",
    "false_omission_rate": "FalseOmissionRate",
    "precision": "Precision",
    "recall": "Recall",
}
"""Names in TFMA's FairnessIndicators, now a separate package, and the metrics that they stand for."""

# Keras metrics of other things than labels and predictions: `accuracy` compares them for equality.
_NOT_OF_PREDICTIONS = ("Accuracy", "Mean", "MeanTensor", "Sum")
_MAX_CHOICES = 5


def with_stock_arguments(
    eval_config: config_pb2.EvalConfig,
    feature_slicing_spec: evaluator_pb2.FeatureSlicingSpec | None,
    fairness_indicator_thresholds: Sequence[float],
) -> config_pb2.EvalConfig:
    """Returns the EvalConfig with TFX's older arguments merged in."""
    config = copy.deepcopy(eval_config)
    if feature_slicing_spec is not None:
        slices = [list(spec.column_for_slicing) for spec in feature_slicing_spec.specs]
        for columns in slices if [] in slices else [*slices, []]:
            config.slicing_specs.add(feature_keys=columns)
    if not any(spec.metrics or _threshold_names(spec) for spec in config.metrics_specs):
        config.options.include_default_metrics.value = True  # the model's own
    if fairness_indicator_thresholds:
        # As TFMA names them: "false_positive_rate@0.50" if there is also "...@0.25".
        digits = max(1, *(len(str(value)) - 2 for value in fairness_indicator_thresholds))
        config.metrics_specs.add(
            metrics=[
                _metric_config(
                    class_name, f"fairness_indicators_metrics/{name}@{value:.{digits}f}", thresholds=[value]
                )
                for value in fairness_indicator_thresholds
                for name, class_name in _FAIRNESS_METRICS.items()
            ]
        )
    return config


def with_defaults(eval_config: config_pb2.EvalConfig, *, has_baseline: bool) -> config_pb2.EvalConfig:
    """Returns the configuration with names for the models, the candidate first.

    Without a baseline, it has neither the baseline's ModelSpec nor change thresholds.
    """
    config = copy.deepcopy(eval_config)
    if not config.model_specs:
        config.model_specs.add()
    if has_baseline and len(config.model_specs) == 1:
        # TFMA adds a copy for the baseline only if the ModelSpec has no name.
        for spec in config.metrics_specs:
            if list(spec.model_names) == [config.model_specs[0].name]:
                del spec.model_names[:]
        config.model_specs[0].name = ""
    config.model_specs.sort(key=lambda spec: spec.is_baseline)
    if not has_baseline and len(config.model_specs) > 2:  # TFMA removes the ModelSpec, but not its name here
        for spec in config.metrics_specs:
            candidates = [model.name for model in config.model_specs if not model.is_baseline]
            spec.model_names[:] = [name for name in spec.model_names if name in candidates]
    config = config_util.update_eval_config_with_defaults(
        config, has_baseline=has_baseline, rubber_stamp=True
    )
    config_util.verify_eval_config(config)
    return config


def with_single_output(eval_config: config_pb2.EvalConfig) -> config_pb2.EvalConfig:
    """Returns the configuration for evaluation models, which are evaluated on a single output."""
    config = copy.deepcopy(eval_config)
    for spec in config.model_specs:
        for key in ("label_key", "prediction_key", "example_weight_key"):
            by_output = getattr(spec, f"{key}s")
            if len(set(by_output.values())) > 1:
                raise SettingError(
                    f"An Evaluator evaluates one output of an evaluation model: set {key} of the ModelSpec "
                    f"instead of {key}s, and use an Evaluator for each output. "
                    f"Received: {key}s={dict(by_output)}"
                )
            if by_output:
                setattr(spec, key, next(iter(by_output.values())))
                by_output.clear()
    return config


def with_settings_of_models(
    eval_config: config_pb2.EvalConfig, settings_by_model: Mapping[str, Mapping[str, Any]]
) -> config_pb2.EvalConfig:
    """Returns the configuration whose metrics use the decision thresholds and intervals of the models.

    A metric for which the user has set a threshold keeps it. A model without a threshold decides at 0.5.

    `settings_by_model`: arguments of metrics by the names of the models.
    """
    config = copy.deepcopy(eval_config)
    if not settings_by_model:
        return config
    del config.metrics_specs[:]
    for spec in eval_config.metrics_specs:
        decided = [(metric, argument) for metric in spec.metrics if (argument := _model_argument(metric))]
        others = [metric for metric in spec.metrics if not _model_argument(metric)]
        if others:
            _add_spec(config, spec, others)
        for name in spec.model_names or [""]:
            metrics = []
            for metric, argument in decided:
                settings = json.loads(metric.config or "{}")
                settings_of_model = settings_by_model.get(name, {})
                if argument in settings_of_model:
                    settings[argument] = settings_of_model[argument]
                metrics.append(copy.deepcopy(metric))
                metrics[-1].config = json.dumps(settings)
            if metrics:
                # The names of the metrics stay, so that those of two models can be compared.
                _add_spec(config, spec, metrics).model_names[:] = [name]
    return config


def _add_spec(
    config: config_pb2.EvalConfig, spec: config_pb2.MetricsSpec, metrics: Sequence[config_pb2.MetricConfig]
) -> config_pb2.MetricsSpec:
    added = config.metrics_specs.add()
    added.CopyFrom(spec)
    del added.metrics[:]
    added.metrics.extend(metrics)
    return added


def _model_argument(metric: config_pb2.MetricConfig) -> str | None:
    """Returns the argument of a metric that the model determines; None if the user has set it."""
    settings = json.loads(metric.config or "{}")
    if metric.class_name == SklearnMetric.__name__:
        argument = "interval" if settings["name"].startswith("interval_") else "threshold"
        return None if argument in settings else argument
    metric_class = None if metric.module else metric_types.registered_metrics().get(metric.class_name)
    if metric_class is None or not issubclass(metric_class, confusion_matrix_metrics.ConfusionMatrixMetric):
        return None
    if settings.keys() & {"threshold", "thresholds", "num_thresholds", "top_k", "class_id"}:
        return None
    arguments = inspect.signature(metric_class).parameters
    return next((name for name in ("thresholds", "threshold") if name in arguments), None)


def has_user_code(eval_config: config_pb2.EvalConfig) -> bool:
    """Returns True if a metric is the user's own code, which may need all features."""
    ours = ("", "tensorflow_model_analysis", "tf_keras", "keras", "components")
    modules = [m.module for spec in eval_config.metrics_specs for m in spec.metrics]
    return any(module.partition(".")[0] not in ours for module in modules)


def uses_model_metrics(eval_config: config_pb2.EvalConfig) -> bool:
    """Returns True if the model's own metrics are computed."""
    metrics = (metric for spec in eval_config.metrics_specs for metric in spec.metrics)
    return any(metric.class_name == ModelMetrics.__name__ for metric in metrics)


def resolve_thresholds(
    eval_config: config_pb2.EvalConfig, graphs: Mapping[str, EvalGraph]
) -> config_pb2.EvalConfig:
    """Returns the configuration with a metric for each of `MetricsSpec.thresholds`.

    A name refers to a metric in the configuration, or else to one of the model's own, or else to one of
    TFMA's.
    """
    config = copy.deepcopy(eval_config)
    own = next(iter(graphs.values())).metric_names if graphs else ()
    computed = {
        metric_specs.metric_instance(metric).name: metric
        for spec in config.metrics_specs
        for metric in spec.metrics
    }
    requested: dict[str, dict[str, str]] = {}  # output -> name -> name in the model
    for spec in config.metrics_specs:
        for name in _threshold_names(spec):
            names_in_model = {
                output: f"{name}/{output}" if output else name for output in spec.output_names or [""]
            }
            if name not in computed and set(names_in_model.values()) <= set(own):
                for output, name_in_model in names_in_model.items():
                    requested.setdefault(output, {})[name] = name_in_model
                continue
            metric = computed.get(name) or _metric_in_tfma(name, own, has_own=bool(graphs))
            _move_thresholds(spec, name, metric)
    option = config.options.include_default_metrics
    if option.value if config.options.HasField("include_default_metrics") else requested:
        requested[""] = {name: name for name in own if name not in computed}
    for output, names in requested.items():
        config.metrics_specs.add(model_names=graphs).metrics.add(
            class_name=ModelMetrics.__name__,
            module=ModelMetrics.__module__,
            config=json.dumps(
                {
                    "paths": {
                        model: graph.path
                        for model, graph in graphs.items()
                        if not set(names.values()).isdisjoint(graph.metric_names)
                    },
                    "names": sorted(names.items()),
                    "output_name": output,
                }
            ),
        )
    if not any(spec.metrics for spec in config.metrics_specs):
        raise SettingError(
            "The EvalConfig has no metrics, and neither has the model"
            f"{'' if graphs else ': these are in an evaluation model (Format-TFMA)'}. Add some: "
            "MetricsSpec(metrics=[MetricConfig(class_name='AUC')])."
        )
    return config


def _threshold_names(spec: config_pb2.MetricsSpec) -> list[str]:
    return sorted({*spec.thresholds, *spec.per_slice_thresholds, *spec.cross_slice_thresholds})


def _move_thresholds(spec: config_pb2.MetricsSpec, name: str, metric: config_pb2.MetricConfig) -> None:
    """Moves the thresholds of a name to a separate MetricConfig; TFMA computes the metric once."""
    moved = spec.metrics.add(class_name=metric.class_name, module=metric.module, config=metric.config)
    if name in spec.thresholds:
        moved.threshold.CopyFrom(spec.thresholds[name])
        del spec.thresholds[name]
    for ours, theirs in (
        (spec.per_slice_thresholds, moved.per_slice_thresholds),
        (spec.cross_slice_thresholds, moved.cross_slice_thresholds),
    ):
        if name in ours:
            theirs.extend(ours[name].thresholds)
            del ours[name]


def _metric_in_tfma(name: str, own: Sequence[str], *, has_own: bool) -> config_pb2.MetricConfig:
    class_names = _names_in_tfma()
    # The prefix of metrics that TFMA added to an EvalSavedModel itself.
    if class_name := class_names.get(name.removeprefix("post_export_metrics/")):
        return _metric_config(class_name, name)
    metrics_of_model = (
        f"The model's own: {', '.join(nearest_first(name, own)) or 'none'}."
        if has_own
        else "The serving model is evaluated, and it defines no metrics."
    )
    near = ", ".join(nearest_first(name, class_names)[:_MAX_CHOICES])
    raise SettingError(
        f"MetricsSpec(thresholds={{{name!r}: ...}}): there is no metric of this name. {metrics_of_model} "
        f"TFMA's, nearest first: {near}, ... Use one of these names, or add the metric: "
        "MetricConfig(class_name=..., threshold=...)."
    )


def _metric_config(class_name: str, name: str, **settings: Any) -> config_pb2.MetricConfig:
    config = json.dumps({"name": name, **settings})
    return config_pb2.MetricConfig(class_name=class_name, config=config)


@functools.cache
def _names_in_tfma() -> dict[str, str]:
    """Returns the class of each metric that needs no settings, by the metric's default name."""
    keras = dict(inspect.getmembers(tf_keras.metrics, inspect.isclass))
    classes = {k: v for k, v in keras.items() if k not in _NOT_OF_PREDICTIONS}
    class_names = {}
    for class_name, metric_class in {**classes, **metric_types.registered_metrics()}.items():
        with contextlib.suppress(TypeError, ValueError):  # it needs settings
            class_names[metric_class().name] = class_name
    return {name: class_name for name, class_name in class_names.items() if name}
