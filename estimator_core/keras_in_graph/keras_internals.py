"""The one gateway to private names of Keras 3 and tf_keras.

A lint rule forbids `keras.src`, `tf_keras.src` and private attributes of Keras objects in all other files:
a new Keras can break only this file. Keras is imported where it is used, since with `TF_USE_LEGACY_KERAS`
TensorFlow itself works without Keras 3.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

_RANDOM_STATE = "seed_generator_state"
_NAME_COUNTS = "object_name_uids"

# Names, scopes and variables of Keras 3


@contextlib.contextmanager
def fresh_names() -> Iterator[None]:
    """Restarts the numbering of automatic names in this thread, within a context.

    Keras 3 numbers names over the whole process ("dense", "dense_1"); the Keras of tf.estimator's
    time did so in each graph. A second graph of the same model must use the names of the first, since
    checkpoints use them.
    """
    if "keras" not in sys.modules:
        yield
        return
    from keras.src.backend.common import global_state

    previous = global_state.get_global_attribute(_NAME_COUNTS)
    global_state.set_global_attribute(_NAME_COUNTS, collections.defaultdict(int))
    try:
        yield
    finally:
        global_state.set_global_attribute(_NAME_COUNTS, previous)


def current_path() -> str:
    """Returns the path of the layers and optimizers that are being built, such as "model/dense"."""
    from keras.src.backend.common.name_scope import current_path as path

    return path()


def tracking_tf_variables(keras_object: Any, variables: dict[int, Any] | None = None) -> Any:
    """Returns an object with which a checkpoint has the same paths as with a Keras 3 object.

    Keras variables are replaced by their `tf.Variable`, because a Keras variable can't restore the
    components of several replicas.

    `found`: results by `id` of the object, for objects that are tracked twice; None if there are none yet.
    """
    import keras

    variables = {} if variables is None else variables
    if id(keras_object) in variables:
        return variables[id(keras_object)]
    if isinstance(keras_object, keras.Variable):
        variables[id(keras_object)] = keras_object.value
        return keras_object.value
    if isinstance(keras_object, tf.Variable):
        return keras_object
    node = variables[id(keras_object)] = tf.__internal__.tracking.AutoTrackable()
    for name, child in keras_object._trackable_children().items():  # noqa: SLF001
        node._track_trackable(tracking_tf_variables(child, variables), name)  # noqa: SLF001
    return node


def in_stateless_scope() -> bool:
    """Returns whether a `keras.StatelessScope` is open in this thread."""
    from keras.src.backend.common import stateless_scope

    return stateless_scope.in_stateless_scope()


def is_random_state(variable: Any) -> bool:
    """Returns whether a Keras variable is the state of a `keras.random.SeedGenerator`."""
    return variable.name == _RANDOM_STATE


# Optimizers of Keras 3


def clipped_gradients(optimizer: Any, gradients: Sequence[Any]) -> list[Any]:
    """Returns the gradients of all variables after the optimizer's clipping, such as its clipnorm."""
    return optimizer._clip_gradients(gradients)  # noqa: SLF001 - only `apply` does it otherwise


def decays_weight(optimizer: Any, variable: Any) -> bool:
    """Returns whether the optimizer's weight decay, if any, applies to the variable."""
    return optimizer._use_weight_decay(variable)  # noqa: SLF001 - there is no public name


def optimizer_slots(optimizer: Any, variable: Any, *names: str) -> list[tf.Variable]:
    """Returns a built optimizer's slots of a variable, by the names of the attributes that list them."""
    index = optimizer._get_variable_index(variable)  # noqa: SLF001 - as its own updates find it
    return [getattr(optimizer, name)[index].value for name in names]


def has_own_update_step(optimizer: Any) -> bool:
    """Returns whether `update_step` was set on the optimizer itself, and not only on its class."""
    return "update_step" in vars(optimizer)


@contextlib.contextmanager
def with_update_step(optimizer: Any, update_step: Callable[..., None]) -> Iterator[None]:
    """Replaces the function by which an optimizer updates each variable, within a context."""
    vars(optimizer)["update_step"] = update_step  # setattr of Keras would track it
    try:
        yield
    finally:
        del vars(optimizer)["update_step"]


# Optimizers of tf_keras.optimizers.legacy


def legacy_hyperparameters(optimizer: Any) -> Mapping[str, Any] | None:
    """Returns an optimizer's hyperparameters without creating their variables.

    None for an optimizer without any, such as a LossScaleOptimizer.
    """
    return getattr(optimizer, "_hyper", None)


class _Hyperparameters(dict[str, Any]):
    """Hyperparameters of an optimizer that can be set again after a graph has variables of them.

    Setting one in place of a variable would assign to the variable, which only its graph can do; setting one
    in place of a function replaces it.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, tf.Variable) and not tf.executing_eagerly():
            value = _OfGraph(value)
        super().__setitem__(name, value)


class _OfGraph:
    """A hyperparameter as a function that returns its variable."""

    def __init__(self, variable: tf.Variable) -> None:
        self._variable = variable

    def __call__(self) -> tf.Variable:
        return self._variable


def keep_legacy_hyperparameters_settable(optimizer: Any) -> None:
    """Lets an unused optimizer's hyperparameters be set again after a graph has variables of them."""
    optimizer._hyper = _Hyperparameters(optimizer._hyper)  # noqa: SLF001


def legacy_settings(optimizer: Any) -> dict[str, Any]:
    """Returns the hyperparameters, clipping and functions of gradients that were set on an optimizer."""
    set_by_user = {
        name: value
        for name, value in optimizer._hyper.items()  # noqa: SLF001
        if not isinstance(value, _OfGraph)
    }
    prefixes = ("_clip", "_global_clip", "gradient_")
    return set_by_user | {n: v for n, v in vars(optimizer).items() if n.startswith(prefixes)}


def update_legacy_settings(optimizer: Any, settings: Mapping[str, Any]) -> None:
    """Changes settings, as those that `legacy_settings` returns, of an unused optimizer."""
    for name, value in settings.items():
        (optimizer._hyper if name in optimizer._hyper else vars(optimizer))[name] = value  # noqa: SLF001


def set_legacy_strategy(optimizer: Any, strategy: Any) -> None:
    """Sets the `tf.distribute.Strategy` of an optimizer that was made outside of the strategy's scope."""
    optimizer._distribution_strategy = strategy  # noqa: SLF001 - else it is the constructor's


# Models, layers and metrics of both


def flattened_layers(model: Any) -> list[Any]:
    """Returns the model and all layers in it, parents before children."""
    return list(model._flatten_layers())  # noqa: SLF001 - `layers` lacks the nested ones


def metric_function(metric: Any) -> Callable[..., Any] | None:
    """Returns the function whose mean a metric computes; None for other metrics."""
    function = getattr(metric, "_fn", None)
    return function if callable(function) else None


# Models of Keras 3


def compile_settings(model: Any) -> dict[str, Any]:
    """Returns the arguments of the model's `compile`, as objects."""
    return dict(model._compile_config.config)  # noqa: SLF001 - get_compile_config serializes them


def lambda_output_shape(layer: Any) -> Any:
    """Returns the argument `output_shape` of a `keras.layers.Lambda`."""
    return layer._output_shape  # noqa: SLF001 - no public name gives it


def make_metrics(model: Any, batch: tuple[Any, Any, Any]) -> None:
    """Creates the variables of the model's metrics and loss trackers.

    `batch`: (inputs, targets, sample weights), used for their shapes and dtypes.
    """
    model._symbolic_build(data_batch=batch)  # noqa: SLF001 - else they wait for `fit`


def loss_trackers(model: Any) -> list[Any]:
    """Returns the mean metrics of losses, which a Keras 3 model lists among its metrics."""
    tracker, losses = (getattr(model, name, None) for name in ("_loss_tracker", "_compile_loss"))
    return [tracker, *(losses.metrics if losses is not None else [])]


# Models of tf_keras


def is_functional(model: Any) -> bool:
    """Returns whether a tf_keras model is a graph of layers, functional or sequential."""
    return model._is_graph_network  # noqa: SLF001 - there is no public name


def tf_keras_compile_settings(model: Any) -> dict[str, Any]:
    """Returns the arguments of a tf_keras model's `compile`, as objects."""
    return model._get_compile_args()  # noqa: SLF001 - get_compile_config serializes them


def tf_keras_updates(layer: Any) -> list[Any]:
    """Returns the updates that a layer, metric or model of tf_keras has created in a graph."""
    with warnings.catch_warnings():  # in a graph nothing else applies them
        warnings.filterwarnings("ignore", ".*updates", UserWarning)
        return list(getattr(layer, "updates", None) or ())


def weigh_losses(model: Any, sample_weights: Sequence[Any] | None) -> None:
    """Compiles the losses and weighted metrics of a tf_keras model in a graph with sample weights."""
    model._compile_weights_loss_and_weighted_metrics(sample_weights)  # noqa: SLF001 - `fit` does it


def clone_optimizer(model: Any, inputs: Any, custom_objects: Mapping[str, Any]) -> Any:
    """Returns an uncompiled copy of a functional tf_keras model in the current graph.

    `inputs`: tensors to call it with; None makes placeholders.
    """
    return importlib.import_module("tf_keras").__internal__.models.clone_and_build_model(
        model, input_tensors=inputs, custom_objects=dict(custom_objects), compile_clone=False
    )


def restore_eager_classes(model: Any) -> None:
    """Restores the classes of a tf_keras model's layers, and of metrics, to those for eager mode.

    `__new__` of a layer changes its class to that for graphs whenever a graph is current.
    """
    tf_keras = importlib.import_module("tf_keras")
    with tf.__internal__.eager_context.eager_mode():
        classes: set[Any] = {type(layer) for layer in flattened_layers(model)}
        for own in classes:
            own.__new__(own)
        tf_keras.metrics.Metric.__new__(tf_keras.metrics.Mean)


def legacy_optimizer_like(optimizer: Any) -> Any:
    """Returns the `tf_keras.optimizers.legacy` optimizer with the settings of a newer one."""
    internal = importlib.import_module("tf_keras").__internal__
    return internal.optimizers.convert_to_legacy_optimizer(optimizer)
