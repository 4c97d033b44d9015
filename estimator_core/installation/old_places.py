"""The names inside tensorflow_estimator 2.15, by the path of their module, and where they are here.

Each module has the public names of the original, and the private ones that several programs use.
"""

from __future__ import annotations

from collections.abc import Mapping

from estimator_core.installation.old_contrib import CONTRIB, CONTRIB_ADVICE
from estimator_core.installation.old_contrib import ROOT as CONTRIB_ROOT

_ROOTS = ("tensorflow_estimator.python.estimator", "tensorflow.python.estimator")
_CORE, _V1 = "estimator_core", "estimator_core.v1"
_HERE = "estimator_core.installation"
_HELPERS, _GC = f"{_HERE}.old_helpers", f"{_HERE}.version_gc"
_BASE_HEAD, _HEADS = f"{_HERE}.old_base_head", f"{_HERE}.old_heads"
_OF_ESTIMATOR, _OF_TRAINING = f"{_HERE}.old_estimator", f"{_HERE}.old_training"
_MODEL_FNS = f"{_HERE}.old_model_fns"

# Whole modules: the path of the original to ours.
ALIASES = {
    "tensorflow_estimator.estimator": _V1,
    **{f"{root}.api._v1.estimator": _V1 for root in _ROOTS},
    **{f"{root}.api._v2.estimator": _CORE for root in _ROOTS},
    "tensorflow_estimator._api.v1.estimator": _V1,
    "tensorflow_estimator._api.v2.estimator": _CORE,
}


def _canned(*names: str) -> dict[str, str]:
    """Returns the places of canned Estimators: TensorFlow 1's by name, TensorFlow 2's as "<name>V2"."""
    places = {}
    for name in names:
        places[name] = f"{_V1}:{name}"
        places[f"{name}V2"] = f"{_CORE}:{name}"
    return places


def _all_of(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}:{name}" for name in names}


_TRAINING = _all_of(_CORE, "EvalSpec", "TrainSpec", "train_and_evaluate")
_EXECUTOR = _all_of(
    _OF_TRAINING,
    "_ContinuousEvalListener",
    "_EvalResult",
    "_EvalStatus",
    "_TrainingExecutor",
    "_assert_eval_spec",
) | _all_of(f"{_CORE}.training.roles", "_DELAY_SECS_PER_WORKER", "_MAX_DELAY_SECS")
_COORDINATOR = _all_of(
    _OF_TRAINING,
    "CHIEF",
    "EVALUATOR",
    "PS",
    "WORKER",
    "should_run_distribute_coordinator",
    "train_and_evaluate",
)
_EXPORTERS = _all_of(_CORE, "BestExporter", "Exporter", "FinalExporter", "LatestExporter")
_EXPORT = _all_of(
    f"{_CORE}.export",
    "ServingInputReceiver",
    "TensorServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
)
_EXPORT_FUNCTIONS = _all_of(
    _OF_ESTIMATOR, "build_all_signature_defs", "get_temp_export_dir", "get_timestamped_export_dir"
)
_EXPORT_OUTPUTS = _all_of(
    f"{_CORE}.export", "ClassificationOutput", "ExportOutput", "PredictOutput", "RegressionOutput"
) | _all_of(f"{_CORE}.spec.export_outputs", "EvalOutput", "TrainOutput")
_SUPERVISED = _all_of(f"{_CORE}.experimental", "build_raw_supervised_input_receiver_fn") | {
    "SupervisedInputReceiver": f"{_CORE}.experimental.supervised_input_receiver:SupervisedInputReceiver"
}
_SESSION_HOOKS = _all_of(_CORE, "SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues")
_BASIC_HOOKS = _all_of(
    _CORE,
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "FeedFnHook",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LoggingTensorHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "ProfilerHook",
    "SecondOrStepTimer",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
)
_ESTIMATOR_HOOKS = _all_of(
    f"{_CORE}.experimental", "InMemoryEvaluatorHook", "make_stop_at_checkpoint_step_hook"
)
_EARLY_STOPPING = _all_of(
    f"{_CORE}.experimental",
    "make_early_stopping_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
)
_INPUTS = _all_of(f"{_CORE}.inputs", "numpy_input_fn", "pandas_input_fn")
_MODEL_FN = _all_of(_CORE, "EstimatorSpec", "ModeKeys") | _all_of(f"{_CORE}.experimental", "call_logit_fn")
_MODEL_FN_PRIVATE = _all_of(_OF_ESTIMATOR, "AVERAGE_LOSS_METRIC_KEY", "LOSS_METRIC_KEY") | {
    "_TPUEstimatorSpec": f"{_CORE}.tpu:TPUEstimatorSpec"
}
_WARM_START = _all_of(_CORE, "VocabInfo", "WarmStartSettings")
_ESTIMATOR = {
    "Estimator": f"{_V1}:Estimator",
    "EstimatorV2": f"{_CORE}:Estimator",
    **_WARM_START,
    **_all_of(_HELPERS, "maybe_overwrite_model_dir_and_session_config"),
}
_ESTIMATOR_PRIVATE = _all_of(
    _OF_ESTIMATOR,
    "_canned_estimator_api_gauge",
    "_check_hooks_type",
    "_check_listeners_type",
    "_estimator_api_gauge",
    "_extract_metric_update_ops",
    "_get_replica_device_setter",
    "_load_global_step_from_checkpoint_dir",
    "_verify_model_fn_args",
    "_write_dict_to_summary",
) | {"_get_default_warm_start_settings": f"{_CORE}.checkpoints.warm_start_settings:as_settings"}
_RUN_CONFIG = _all_of(_CORE, "RunConfig") | _all_of(_HELPERS, "TaskType")
_KERAS = {"model_to_estimator": f"{_V1}:model_to_estimator"}
_BASELINE = _canned("BaselineClassifier", "BaselineEstimator", "BaselineRegressor")
_BOOSTED_TREES = _all_of(_CORE, "BoostedTreesClassifier", "BoostedTreesEstimator", "BoostedTreesRegressor")
_DNN = _canned("DNNClassifier", "DNNEstimator", "DNNRegressor")
_COMBINED = _canned("DNNLinearCombinedClassifier", "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor")
_LINEAR = _canned("LinearClassifier", "LinearEstimator", "LinearRegressor")
_KMEANS = {"KMeansClustering": f"{_CORE}.experimental:KMeans"}
_PARSING = {
    f"{name}{suffix}": f"{_CORE}:{name}"
    for name in ("classifier_parse_example_spec", "regressor_parse_example_spec")
    for suffix in ("", "_v2")
}
_ADD_METRICS = _all_of(_CORE, "add_metrics")
# Functions of base_head; most are in canned.head too, by another name.
_BASE_HEAD_FUNCTIONS = {
    "CLASSIFY_SERVING_KEY": "_CLASSIFY_SERVING_KEY",
    "DEFAULT_SERVING_KEY": "_DEFAULT_SERVING_KEY",
    "PREDICT_SERVING_KEY": "_PREDICT_SERVING_KEY",
    "REGRESS_SERVING_KEY": "_REGRESS_SERVING_KEY",
    "_LABEL_NONE_ERR_MSG": None,
    "all_class_ids": "_all_class_ids",
    "all_classes": "_all_classes",
    "call_loss_fn": "_call_loss_fn",
    "check_dense_labels_match_logits_and_reshape": "_check_dense_labels_match_logits_and_reshape",
    "check_label_range": "_assert_range",
    "check_logits_final_dim": "_check_logits_final_dim",
    "check_prediction_keys": None,
    "classification_output": "_classification_output",
    "create_estimator_spec_summary": None,
    "create_estimator_spec_train_op": None,
    "create_eval_metrics_tuple": "_create_eval_metrics_tuple",
    "get_weights_and_check_match_logits": "_get_weights_and_check_match_logits",
    "update_metric_with_broadcast_weights": None,
    "validate_loss_fn_args": "_validate_loss_fn_args",
    "validate_loss_reduction": None,
    "validate_n_classes": "_validate_n_classes",
    "validate_trainable_variables": None,
    "validate_update_ops": None,
    "validate_v2_optimizer": None,
}
_CANNED_HEADS = (
    _all_of(
        _HEADS,
        "LossSpec",
        "_BinaryLogisticHeadWithSigmoidCrossEntropyLoss",
        "_Head",
        "_MultiClassHeadWithSoftmaxCrossEntropyLoss",
        "_RegressionHeadWithMeanSquaredErrorLoss",
        "_accuracy_baseline",
        "_auc",
        "_binary_logistic_head_with_sigmoid_cross_entropy_loss",
        "_binary_logistic_or_multi_class_head",
        "_indicator_labels_mean",
        "_multi_class_head_with_softmax_cross_entropy_loss",
        "_regression_head",
        "_summary_key",
    )
    | _all_of(_BASE_HEAD, "_append_update_ops")
    | {
        private: f"{_BASE_HEAD}:{name}"
        for name, private in _BASE_HEAD_FUNCTIONS.items()
        if private is not None
    }
    | {
        # Before TensorFlow 1.7.
        "_check_logits": f"{_BASE_HEAD}:check_logits_final_dim",
        "_regression_head_with_mean_squared_error_loss": f"{_HEADS}:_regression_head",
    }
)
_REGRESSION_HEADS = ("LogisticRegressionHead", "PoissonRegressionHead", "RegressionHead")

# Path below either root to its names; each name to "our module:name in it".
_MODULES: Mapping[str, Mapping[str, str]] = {
    "": {},
    "api": {},
    "api._v1": {},
    "api._v2": {},
    "canned": {},
    "canned.baseline": _BASELINE,
    "canned.boosted_trees": _BOOSTED_TREES,
    "canned.dnn": _DNN
    | _all_of(f"{_CORE}.experimental", "dnn_logit_fn_builder")
    | _all_of(_MODEL_FNS, "_dnn_logit_fn_builder", "_dnn_model_fn", "dnn_model_fn_v2"),
    "canned.dnn_linear_combined": _COMBINED,
    "canned.head": _CANNED_HEADS,
    "canned.kmeans": _KMEANS,
    "canned.linear": _LINEAR
    | _all_of(f"{_CORE}.experimental", "LinearSDCA", "linear_logit_fn_builder")
    | _all_of(
        _MODEL_FNS,
        "_linear_model_fn",
        "_linear_model_fn_v2",
        "_validate_linear_sdca_optimizer_for_linear_classifier",
    )
    | {"_linear_logit_fn_builder": f"{_CORE}.experimental:linear_logit_fn_builder"},
    "canned.metric_keys": _all_of(f"{_CORE}.spec.keys", "MetricKeys"),
    "canned.optimizers": _all_of(_HELPERS, "get_optimizer_instance", "get_optimizer_instance_v2"),
    "canned.parsing_utils": _PARSING,
    "canned.prediction_keys": _all_of(f"{_CORE}.spec.keys", "PredictionKeys"),
    "canned.rnn": _all_of(f"{_CORE}.experimental", "RNNClassifier", "RNNEstimator"),
    "early_stopping": _EARLY_STOPPING | _all_of(_HELPERS, "read_eval_metrics"),
    "estimator": _ESTIMATOR | _ESTIMATOR_PRIVATE,
    "estimator_export": _all_of(_HELPERS, "estimator_export"),
    "estimator_lib": _BASELINE
    | _DNN
    | _COMBINED
    | _LINEAR
    | _KMEANS
    | _PARSING
    | _ADD_METRICS
    | _EXPORTERS
    | _EXPORT
    | _EXPORT_OUTPUTS
    | _ESTIMATOR_HOOKS
    | _SESSION_HOOKS
    | _BASIC_HOOKS
    | _EARLY_STOPPING
    | _INPUTS
    | _MODEL_FN
    | _ESTIMATOR
    | _RUN_CONFIG
    | _TRAINING
    | _KERAS
    | {"inputs": f"{_CORE}:inputs"},
    "export": {},
    "export.export": _EXPORT | _SUPERVISED | _EXPORT_FUNCTIONS,
    "export.export_lib": _EXPORT | _EXPORT_OUTPUTS | _SUPERVISED | _EXPORT_FUNCTIONS,
    "export.export_output": _EXPORT_OUTPUTS,
    "exporter": _EXPORTERS
    | _all_of(_HELPERS, "_SavedModelExporter")
    | {"_loss_smaller": f"{_CORE}.export.best_exporter:loss_smaller"},
    "extenders": _ADD_METRICS,
    "gc": _all_of(
        _GC,
        "Path",
        "_get_paths",
        "_largest_export_versions",
        "_mod_export_version",
        "_negation",
        "_one_of_every_n_export_versions",
        "_union",
    ),
    "head": {},
    "head.base_head": _all_of(_CORE, "Head") | _all_of(_BASE_HEAD, *_BASE_HEAD_FUNCTIONS),
    "head.binary_class_head": _all_of(_CORE, "BinaryClassHead"),
    "head.head_utils": _all_of(f"{_CORE}.heads.binary_or_multi_class", "binary_or_multi_class_head"),
    "head.multi_class_head": _all_of(_CORE, "MultiClassHead"),
    "head.multi_head": _all_of(_CORE, "MultiHead"),
    "head.multi_label_head": _all_of(_CORE, "MultiLabelHead"),
    "head.regression_head": _all_of(_CORE, *_REGRESSION_HEADS),
    "head.sequential_head": _all_of(f"{_CORE}.heads.sequential", "SequentialHeadWrapper"),
    "hooks": {},
    "hooks.basic_session_run_hooks": _BASIC_HOOKS,
    "hooks.hooks": _ESTIMATOR_HOOKS,
    "hooks.session_run_hook": _SESSION_HOOKS,
    "inputs": _INPUTS,
    "inputs.inputs": _INPUTS,
    "inputs.numpy_io": _all_of(f"{_CORE}.inputs", "numpy_input_fn"),
    "inputs.pandas_io": _all_of(f"{_CORE}.inputs", "pandas_input_fn"),
    "keras": _KERAS,
    "keras_lib": _KERAS,
    "mode_keys": _all_of(_CORE, "ModeKeys"),
    "model_fn": _MODEL_FN | _MODEL_FN_PRIVATE,
    "run_config": _RUN_CONFIG,
    "tpu": {},
    "tpu.async_checkpoint": {"AsyncCheckpointSaverHook": f"{_CORE}:CheckpointSaverHook"},
    "tpu.error_handling": {},
    "tpu.util": {},
    "tpu._tpu_estimator_embedding": _all_of(f"{_CORE}.tpu.experimental", "EmbeddingConfigSpec"),
    "tpu.tpu_config": _all_of(f"{_CORE}.tpu", "InputPipelineConfig", "RunConfig", "TPUConfig"),
    "tpu.tpu_context": _all_of(f"{_CORE}.tpu.tpu_context", "TPUContext"),
    "tpu.tpu_estimator": _all_of(f"{_CORE}.tpu", "TPUEstimator", "TPUEstimatorSpec")
    | _all_of(f"{_CORE}.tpu.serving_graph", "ExportSavedModelApiVersion"),
    "training": _TRAINING | _EXECUTOR,
    "util": _all_of(_HELPERS, "fn_args", "parse_input_fn_result")
    | _all_of(_OF_ESTIMATOR, "parse_iterator_result")
    | {"_DatasetInitializerHook": f"{_CORE}.execution.inputs:IteratorInitializerHook"},
    "warm_starting_util": _WARM_START,  # until TensorFlow 1.8
}


def _full_name(root: str, path: str) -> str:
    return f"{root}.{path}" if path else root


PLACES = {_full_name(root, path): names for root in _ROOTS for path, names in _MODULES.items()}
PLACES |= {"tensorflow_estimator": {}, "tensorflow_estimator.python": {}}
PLACES |= {f"tensorflow_estimator.{path}": {} for path in ("_api", "_api.v1", "_api.v2")}
# TensorFlow's own, which only tf.estimator used.
PLACES |= {
    f"tensorflow.python.{path}": names
    for path, names in _MODULES.items()
    if path.startswith("tpu.") and path != "tpu._tpu_estimator_embedding"
}
PLACES["tensorflow.python.distribute.estimator_training"] = _COORDINATOR
PLACES |= {_full_name(CONTRIB_ROOT, path): names for path, names in CONTRIB.items()}
PLACES |= {f"{CONTRIB_ROOT}.tpu.python": {}, f"{CONTRIB_ROOT}.tpu.python.tpu": {}}
PLACES |= {
    f"{CONTRIB_ROOT}.tpu.python.{path}": names for path, names in _MODULES.items() if path.startswith("tpu.")
}

_LAYERS = "the functions of estimator_core.experimental that build logits"
_OWN_LISTENER = "a CheckpointSaverListener in TrainSpec(saving_listeners=...), and EvalSpec's intervals"

# Advice for missing names, by their path below a root; for tf.contrib, by the whole path.
INSTEAD = {
    **{_full_name(CONTRIB_ROOT, path): advice for path, advice in CONTRIB_ADVICE.items()},
    "canned.boosted_trees._bt_model_fn": "BoostedTreesEstimator",
    "canned.boosted_trees_utils": "estimator_core's BoostedTreesClassifier and its explanations",
    "canned.dnn._DNNModel": _LAYERS,
    "canned.dnn._DNNModelV2": _LAYERS,
    "canned.linear.LinearModel": _LAYERS,
    "canned.linear_optimizer": "estimator_core.experimental.LinearSDCA",
    "early_stopping._StopOnPredicateHook": "estimator_core.experimental.make_early_stopping_hook",
    "inputs.queues": "numpy_input_fn or pandas_input_fn of estimator_core.inputs, or tf.data",
    "keras._clone_and_build_model": "estimator_core.model_to_estimator",
    "keras_lib._clone_and_build_model": "estimator_core.model_to_estimator",
    "tpu.error_handling.ErrorRendezvous": "the error itself, which train and evaluate raise",
    "tpu.util.parse_iterations_per_loop": "TPUConfig(iterations_per_loop='30s'), which reads it",
    "training._NewCheckpointListenerForEvaluate": _OWN_LISTENER,
}


def instead_of(full_name: str) -> str:
    """Returns the sentence that names what to use for a name or module that is not here, or ""."""
    for root in (*_ROOTS, "tensorflow.python"):
        if advice := INSTEAD.get(full_name.removeprefix(f"{root}.")):
            return f" Use {advice}."
    if full_name.startswith(f"{CONTRIB_ROOT}."):
        return " No TensorFlow 2 has it: copy it into your project."
    return ""
