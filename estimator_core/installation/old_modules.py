"""The modules inside tensorflow_estimator 2.15, by their former paths.

These paths were never public, but many programs use them. `OldModuleFinder` makes them importable:
each module has the public names of the original, and the few helpers of `old_helpers` and
`version_gc` that programs used.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

_ROOTS = ("tensorflow_estimator.python.estimator", "tensorflow.python.estimator")
_CORE, _V1 = "estimator_core", "estimator_core.v1"
_HELPERS, _GC = "estimator_core.installation.old_helpers", "estimator_core.installation.version_gc"

# Whole modules: the path of the original to ours.
_ALIASES = {
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
_EXPORTERS = _all_of(_CORE, "BestExporter", "Exporter", "FinalExporter", "LatestExporter")
_EXPORT = _all_of(
    f"{_CORE}.export",
    "ServingInputReceiver",
    "TensorServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
)
_EXPORT_OUTPUTS = _all_of(
    f"{_CORE}.export", "ClassificationOutput", "ExportOutput", "PredictOutput", "RegressionOutput"
) | _all_of(f"{_CORE}.spec.export_outputs", "EvalOutput", "TrainOutput")
_SUPERVISED = _all_of(f"{_CORE}.experimental", "build_raw_supervised_input_receiver_fn") | {
    "SupervisedInputReceiver": f"{_CORE}.experimental.supervised_input_receiver:SupervisedInputReceiver"
}
_SESSION_HOOKS = _all_of(
    _CORE, "SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"
)
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
_MODEL_FN = _all_of(_CORE, "EstimatorSpec", "ModeKeys") | _all_of(
    f"{_CORE}.experimental", "call_logit_fn"
)
_ESTIMATOR = {
    "Estimator": f"{_V1}:Estimator",
    "EstimatorV2": f"{_CORE}:Estimator",
    **_all_of(_CORE, "VocabInfo", "WarmStartSettings"),
    **_all_of(_HELPERS, "maybe_overwrite_model_dir_and_session_config"),
}
_RUN_CONFIG = _all_of(_CORE, "RunConfig") | _all_of(_HELPERS, "TaskType")
_KERAS = {"model_to_estimator": f"{_V1}:model_to_estimator"}
_BASELINE = _canned("BaselineClassifier", "BaselineEstimator", "BaselineRegressor")
_BOOSTED_TREES = _all_of(
    _CORE, "BoostedTreesClassifier", "BoostedTreesEstimator", "BoostedTreesRegressor"
)
_DNN = _canned("DNNClassifier", "DNNEstimator", "DNNRegressor")
_COMBINED = _canned(
    "DNNLinearCombinedClassifier", "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor"
)
_LINEAR = _canned("LinearClassifier", "LinearEstimator", "LinearRegressor")
_KMEANS = {"KMeansClustering": f"{_CORE}.experimental:KMeans"}
_PARSING = {
    f"{name}{suffix}": f"{_CORE}:{name}"
    for name in ("classifier_parse_example_spec", "regressor_parse_example_spec")
    for suffix in ("", "_v2")
}
_ADD_METRICS = _all_of(_CORE, "add_metrics")
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
    "canned.dnn": _DNN | _all_of(f"{_CORE}.experimental", "dnn_logit_fn_builder"),
    "canned.dnn_linear_combined": _COMBINED,
    "canned.head": _all_of(
        _HELPERS,
        "_binary_logistic_head_with_sigmoid_cross_entropy_loss",
        "_multi_class_head_with_softmax_cross_entropy_loss",
        "_regression_head",
    )
    | {
        "_binary_logistic_or_multi_class_head": f"{_V1}.heads:classifier_head",
        "_regression_head_with_mean_squared_error_loss": f"{_HELPERS}:_regression_head",
    },
    "canned.kmeans": _KMEANS,
    "canned.linear": _LINEAR
    | _all_of(f"{_CORE}.experimental", "LinearSDCA", "linear_logit_fn_builder"),
    "canned.metric_keys": _all_of(f"{_CORE}.spec.keys", "MetricKeys"),
    "canned.optimizers": _all_of(_HELPERS, "get_optimizer_instance", "get_optimizer_instance_v2"),
    "canned.parsing_utils": _PARSING,
    "canned.prediction_keys": _all_of(f"{_CORE}.spec.keys", "PredictionKeys"),
    "canned.rnn": _all_of(f"{_CORE}.experimental", "RNNClassifier", "RNNEstimator"),
    "early_stopping": _EARLY_STOPPING | _all_of(_HELPERS, "read_eval_metrics"),
    "estimator": _ESTIMATOR,
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
    "export.export": _EXPORT | _SUPERVISED,
    "export.export_lib": _EXPORT | _EXPORT_OUTPUTS | _SUPERVISED,
    "export.export_output": _EXPORT_OUTPUTS,
    "exporter": _EXPORTERS | _all_of(_HELPERS, "_SavedModelExporter"),
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
    "head.base_head": _all_of(_CORE, "Head"),
    "head.binary_class_head": _all_of(_CORE, "BinaryClassHead"),
    "head.head_utils": _all_of(
        f"{_CORE}.heads.binary_or_multi_class", "binary_or_multi_class_head"
    ),
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
    "model_fn": _MODEL_FN,
    "run_config": _RUN_CONFIG,
    "tpu": {},
    "tpu._tpu_estimator_embedding": _all_of(f"{_CORE}.tpu.experimental", "EmbeddingConfigSpec"),
    "tpu.tpu_config": _all_of(f"{_CORE}.tpu", "InputPipelineConfig", "RunConfig", "TPUConfig"),
    "tpu.tpu_context": _all_of(f"{_CORE}.tpu.tpu_context", "TPUContext"),
    "tpu.tpu_estimator": _all_of(f"{_CORE}.tpu", "TPUEstimator", "TPUEstimatorSpec")
    | _all_of(f"{_CORE}.tpu.serving_graph", "ExportSavedModelApiVersion"),
    "training": _TRAINING | _all_of(_HELPERS, "_TrainingExecutor"),
    "util": _all_of(_HELPERS, "fn_args", "parse_input_fn_result"),
}


def _full_name(root: str, path: str) -> str:
    return f"{root}.{path}" if path else root


_PLACES = {_full_name(root, path): names for root in _ROOTS for path, names in _MODULES.items()}
_PLACES |= {"tensorflow_estimator": {}, "tensorflow_estimator.python": {}}
_PLACES |= {f"tensorflow_estimator.{path}": {} for path in ("_api", "_api.v1", "_api.v2")}
_MANAGED = ("tensorflow_estimator", "tensorflow.python.estimator")


class _OldModule(types.ModuleType):
    """A module of the original, which looks up its names on access."""

    __path__: list[str] = []  # each may be a package; the finder knows its modules

    def __getattr__(self, name: str) -> Any:
        full_name = f"{self.__name__}.{name}"
        names = _PLACES[self.__name__]
        if name in names:
            module, _, attribute = names[name].partition(":")
            value = getattr(importlib.import_module(module), attribute)
            setattr(self, name, value)
            return value
        if full_name in _PLACES or full_name in _ALIASES:
            return importlib.import_module(full_name)
        if name.startswith("__") or _is_probe(name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        message = (
            f"estimator_core has no {name!r} in {self.__name__}, a module inside the former "
            f"tensorflow_estimator. It has {_contents(self.__name__)}."
        )
        if _is_asked_by_an_import(sys._getframe(1)):  # noqa: SLF001  # no public way in
            raise ImportError(message, name=self.__name__)
        raise AttributeError(message)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_PLACES[self.__name__], *_inner_modules(self.__name__)})


def _is_probe(name: str) -> bool:
    """Returns whether the name is probed by a tool such as IPython or pytest, not used by a program."""
    return name.startswith(("_ipython_", "_repr_", "pytest_"))


def _is_asked_by_an_import(frame: types.FrameType) -> bool:
    """Returns whether a frame is at a `from module import name`, which hides an AttributeError's text."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def _inner_modules(name: str) -> list[str]:
    """Returns the names of the modules directly below a module."""
    prefix = f"{name}."
    below = [full[len(prefix) :] for full in {**_PLACES, **_ALIASES} if full.startswith(prefix)]
    return sorted({path for path in below if "." not in path})


def _contents(name: str) -> str:
    found = sorted(_PLACES.get(name, ())) + _inner_modules(name)
    return ", ".join(found) if found else "nothing"


class OldModuleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of the table, and raises for others below the same paths."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module of the table; None for modules outside of its paths.

        Raises:
            ModuleNotFoundError: The module is below its paths, but not in the table.
        """
        del path, target
        if not f"{fullname}.".startswith(tuple(f"{root}." for root in _MANAGED)):
            return None
        if fullname in _PLACES or _alias(fullname) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        parent = fullname.rpartition(".")[0]
        raise ModuleNotFoundError(
            f"estimator_core has no module {fullname!r}, which would have been inside the former "
            f"tensorflow_estimator. Below {parent} it has {_contents(parent)}.",
            name=fullname,
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns the module, which looks up its own names."""
        return _OldModule(spec.name, "A module of the former tensorflow_estimator.")

    def exec_module(self, module: types.ModuleType) -> None:
        """Replaces the module by ours if it stands for a whole module."""
        alias = _alias(module.__name__)
        if alias is not None:
            sys.modules[module.__name__] = alias


def _alias(fullname: str) -> types.ModuleType | None:
    """Returns our module for a path: one of `_ALIASES`, or a public module inside it; else None."""
    if fullname in _ALIASES:
        return importlib.import_module(_ALIASES[fullname])
    parent, _, name = fullname.rpartition(".")
    outer = _alias(parent) if parent else None
    inner = getattr(outer, name, None)
    is_public = outer is not None and name in getattr(outer, "__all__", ())
    return inner if is_public and isinstance(inner, types.ModuleType) else None
