"""Private members of tf.estimator's Estimator, which public programs read, call or override."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.execution.inputs import inputs_from
from estimator_core.execution.parameter_server import replica_device_setter
from estimator_core.spec.arguments import selected_predictions

_PACKAGE = __name__.partition(".")[0]
_MEMBERS = (
    "_call_input_fn",
    "_call_model_fn",
    "config",
    "eval_dir",
    "evaluate",
    "experimental_export_all_saved_models",
    "export_saved_model",
    "export_savedmodel",
    "get_variable_names",
    "get_variable_value",
    "model_dir",
    "params",
    "predict",
    "train",
)
_TRAIN = "train() with hooks"
_EVALUATE = "evaluate() with hooks"
_EXPORT = "experimental_export_all_saved_models()"
_BUILD = "build_program(mode, input_fn), which returns the graph of a mode"
# Steps of tf.estimator's methods that this Estimator takes in another way, and what to use instead.
_OTHER_STEPS = {
    "_actual_eval": _EVALUATE,
    "_actual_train_model_distributed": _TRAIN,
    "_add_meta_graph_for_mode": _EXPORT,
    "_call_model_fn_eval": _BUILD,
    "_call_model_fn_eval_distributed": _BUILD,
    "_convert_eval_steps_to_hooks": "the argument `steps` of evaluate()",
    "_convert_train_steps_to_hooks": "tf.compat.v1.train.StopAtStepHook",
    "_create_global_step": "_create_and_assert_global_step(graph)",
    "_evaluate_build_graph": _BUILD,
    "_evaluate_run": _EVALUATE,
    "_get_iterator_from_input_fn": "_get_features_and_labels_from_input_fn(input_fn, mode)",
    "_maybe_warm_start": "the argument `warm_start_from` of the Estimator",
    "_train_model": _TRAIN,
    "_train_model_default": _TRAIN,
    "_train_model_distributed": _TRAIN,
    "_train_with_estimator_spec": _TRAIN,
    "_train_with_estimator_spec_distributed": _TRAIN,
}
# Here for programs that call them; this Estimator calls neither these nor the steps above, so they can't be
# replaced.
_HELPERS = (
    "_extract_batch_length",
    "_extract_keys",
    "_get_features_and_labels_from_input_fn",
    "_get_features_from_input_fn",
    "_validate_features_in_predict_input",
)


class FormerMembers:
    """Private members that programs written for tf.estimator use in addition to the public ones."""

    _call_input_fn: Any
    _config: Any
    config: Any

    @property
    def _session_config(self) -> Any:
        return self.config.session_config

    @_session_config.setter
    def _session_config(self, value: Any) -> None:
        self._config = self._config.replace(session_config=value)

    @property
    def _train_distribution(self) -> Any:
        return self.config.train_distribute

    @_train_distribution.setter
    def _train_distribution(self, value: Any) -> None:
        self._config = self._config.replace(train_distribute=value)

    @property
    def _eval_distribution(self) -> Any:
        return self.config.eval_distribute

    @_eval_distribution.setter
    def _eval_distribution(self, value: Any) -> None:
        self._config = self._config.replace(eval_distribute=value)

    @property
    def _device_fn(self) -> Any:
        if self.config.device_fn is None and self.config.num_ps_replicas:
            return replica_device_setter(self.config.task_cluster)
        return self.config.device_fn

    @_device_fn.setter
    def _device_fn(self, value: Any) -> None:
        self._config = self._config.replace(device_fn=value)

    def _get_features_and_labels_from_input_fn(self, input_fn: Any, mode: str) -> Any:
        """Returns (features, labels, hooks), in the current graph."""
        inputs = inputs_from(self._call_input_fn(input_fn, mode), mode)
        return *inputs.next_batch(), list(inputs.hooks)

    def _get_features_from_input_fn(self, input_fn: Any, mode: str) -> Any:
        features, _, hooks = self._get_features_and_labels_from_input_fn(input_fn, mode)
        return features, hooks

    def _validate_features_in_predict_input(self, result: Any) -> None:
        """Does nothing: `predict` itself warns of an endless input."""

    def _extract_keys(self, predictions: Any, predict_keys: Any) -> Any:
        return selected_predictions(predictions, predict_keys or None)

    def _extract_batch_length(self, predictions: Mapping[str, Any]) -> int | None:
        sizes = {name: value.shape[0] for name, value in predictions.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"Batch length of predictions should be same. Received: {sizes}")
        return next(iter(sizes.values()), None)


class _OtherStep:
    """A member that can be neither read nor replaced, because nothing here would call it."""

    def __init__(self, name: str, instead: str):
        self._message = f"This Estimator has no {name}, a private method of tf.estimator. Use {instead}."

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise AttributeError(self._message)

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(self._message)


class _Helper:
    """A method that can't be replaced on an instance, because nothing here would call it."""

    def __init__(self, function: Any):
        self._function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._function.__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(
            f"This Estimator never calls {self._function.__name__}, so it can't be replaced. Replace "
            "_call_input_fn or _model_fn, or use hooks."
        )


for _name in _HELPERS:
    setattr(FormerMembers, _name, _Helper(vars(FormerMembers)[_name]))
for _name, _instead in _OTHER_STEPS.items():
    setattr(FormerMembers, _name, _OtherStep(_name, _instead))


def check_overrides(subclass: type, base: type) -> None:
    """Checks that a subclass, outside of this package, overrides no member of the Estimator.

    Source: tf.estimator 2.15, which looks at the class itself, not at the classes between, and accepts any
    class named "TPUEstimator".
    """
    if subclass.__module__.partition(".")[0] == _PACKAGE or subclass.__name__ == "TPUEstimator":
        return
    own = vars(subclass)
    overridden = [name for name in _MEMBERS if name in own and own[name] != getattr(base, name)]
    overridden += [name for name in (*_OTHER_STEPS, *_HELPERS) if name in own]
    if overridden:
        raise ValueError(
            f"Subclasses of Estimator cannot override members of Estimator. {subclass} does override "
            f"{overridden}: rename your method, and call the Estimator's from it."
        )


def check_obeyed(subclass: type) -> None:
    """Checks that a subclass overrides nothing that tf.estimator would call and this Estimator would not."""
    own = {name for base in subclass.__mro__ if base is not FormerMembers for name in vars(base)}
    ignored = [name for name in (*_OTHER_STEPS, *_HELPERS) if name in own]
    if ignored:
        raise ValueError(
            f"{subclass} overrides {ignored}, which this Estimator never calls. Override `_call_model_fn`, "
            "`_call_input_fn` or a public method, or use hooks."
        )
