"""A Keras 3 model in the graphs of an Estimator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import keras
import tensorflow as tf

from estimator_core import tf1
from estimator_core.keras_in_graph import graph_variables, keras_internals, keras_optimizers, side_effects
from estimator_core.keras_in_graph.calling import USE_KERAS_2
from estimator_core.keras_models import keras3_step, model_inputs
from estimator_core.keras_models.graph_model import Conversion, GraphModel
from estimator_core.keras_models.live_objects import fresh_metric, with_live_functions
from estimator_core.keras_models.model_weights import ModelWeights
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys


class Keras3Model(GraphModel):
    """A compiled Keras 3 model: functional, sequential, or a subclass with a configuration.

    Each graph gets a copy made from the model's configuration. The side effects of Keras (the
    moving statistics of a batch normalization, the state of random numbers) are computed as tensors in a
    `keras.StatelessScope`, and assigned by the train op: as in any graph, evaluating
    only the loss changes nothing.

    `model`: the Keras model; its current weights are the initial ones.
    """

    def __init__(self, model: Any, conversion: Conversion):
        super().__init__(model, conversion)
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "An Estimator runs Keras models on TensorFlow: set the environment variable KERAS_BACKEND to "
                f"'tensorflow' before Keras is imported. Received: {keras.backend.backend()!r}"
            )
        if not tf.executing_eagerly():
            raise ValueError(
                "A Keras 3 model has its weights in eager variables: make it, and the Estimator, outside of "
                "tf.Graph().as_default(). A program that calls tf.compat.v1.disable_v2_behavior() needs "
                f"Keras 2: {USE_KERAS_2} Received: keras_model={model!r}"
            )
        _check_has_no_tables(model)
        try:
            self._config, functions = with_live_functions(
                model.get_config(), keras_internals.flattened_layers(model)
            )
        except NotImplementedError as error:
            raise ValueError(
                "The Keras model has no configuration to copy it from: give its class a get_config() that "
                f"returns the arguments of its constructor. Received: keras_model={model!r}"
            ) from error
        classes = {type(layer) for layer in keras_internals.flattened_layers(model)}
        own = {kind.__name__: kind for kind in classes if kind.__module__.split(".")[0] != "keras"}
        self._custom_objects = {**own, **functions, **conversion.custom_objects}
        self._build_config = model.get_build_config() if model.built else None
        values = [variable.numpy() for variable in model.variables]
        self._weights = ModelWeights(values, conversion.checkpoint_format)

    # GraphModel

    def check_is_trainable(self) -> None:
        """Checks that an Estimator can train the model."""
        if not self.model.compiled:
            raise ValueError(
                "The given keras model has not been compiled yet: call its compile() first. Received: "
                f"keras_model={self.model!r}"
            )
        for name in ("train_step", "test_step"):
            if getattr(type(self.model), name) is not getattr(keras.Model, name):
                raise ValueError(
                    f"The Keras model overrides {name}(), which an Estimator does not call: override "
                    f"compute_loss() and compute_metrics() instead. Received: keras_model={self.model!r}"
                )

    def model_fn(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
        """Returns the spec of a copy of the model in the current graph."""
        del params, config
        features, labels = model_inputs.as_tensors((features, labels))
        with side_effects.collected_side_effects((features, labels)) as effects:
            spec, kept = self._spec(features, labels, mode)
        # All other variables are those of metrics.
        graph_variables.make_local(
            variable for variable in effects.variables if not any(variable is k for k in kept)
        )
        return spec

    def _spec(self, features: Any, labels: Any, mode: str) -> tuple[EstimatorSpec, list[Any]]:
        """Returns the spec of a copy of the model, and the variables that belong in checkpoints."""
        features, sample_weights = model_inputs.split_sample_weights(features)
        inputs = self._inputs(features)
        copy = self._copy(inputs)
        if mode == ModeKeys.PREDICT:
            predictions = self._named(keras3_step.predict(copy, inputs))
            spec = EstimatorSpec(
                mode,
                predictions=predictions,
                export_outputs=self.conversion.signatures(predictions),
                scaffold=self._weights.scaffold(copy, _tf_variables(copy)),
            )
            return spec, copy.variables
        if labels is None and type(self.model).compute_loss is keras.Model.compute_loss:
            model_inputs.check_needs_no_labels(self.model)
        targets = self._targets(labels, "labels")
        sample_weights = self._targets(sample_weights, "sample weights")
        optimizer = self._compile(copy, with_optimizer=mode == ModeKeys.TRAIN)
        if mode == ModeKeys.EVAL:
            outputs, loss, metrics = keras3_step.evaluate(copy, inputs, targets, sample_weights)
            spec = EstimatorSpec(
                mode,
                predictions=self._named(outputs),
                loss=loss,
                eval_metric_ops=self.conversion.renamed_metrics(metrics),
                scaffold=self._weights.scaffold(copy, _tf_variables(copy)),
            )
            return spec, copy.variables
        outputs, loss, train_op = keras3_step.train(copy, optimizer, inputs, targets, sample_weights)
        scaffold = self._weights.scaffold(
            keras_internals.tracking_tf_variables(copy),
            _tf_variables(copy),
            keras_internals.tracking_tf_variables(optimizer),
            for_writing=True,
        )
        spec = EstimatorSpec(
            mode, predictions=self._named(outputs), loss=loss, train_op=train_op, scaffold=scaffold
        )
        return spec, [*copy.variables, *optimizer.variables]

    def save_initial(self, path: str) -> str:
        """Writes the model as a checkpoint of the Estimator, and returns the path."""
        with self._scratch_graph() as copy:
            return self._weights.save(copy, _tf_variables(copy), path)

    def load(self, checkpoint_path: str) -> Any:
        """Writes the weights of a checkpoint of the Estimator into the model, and returns it."""
        with self._scratch_graph() as copy:
            values = self._weights.read(_tf_variables(copy), checkpoint_path)
        for variable, value in zip(self.model.variables, values, strict=True):
            variable.assign(value)
        return self.model

    # The copy

    @contextlib.contextmanager
    def _scratch_graph(self) -> Iterator[Any]:
        """Opens a new default graph, and yields a copy of the model in it."""
        if not self._weights.values:
            raise ValueError(
                "The Keras model has no variables yet: call the model once, or its build(), before it is "
                f"made an Estimator. Received: keras_model={self.model!r}"
            )
        with tf.Graph().as_default() as graph, side_effects.collected_side_effects():
            tf1.train.create_global_step(graph)
            yield self._copy(None)

    def _copy(self, inputs: Any) -> Any:
        """Returns a copy of the model in the current graph, with all its variables."""
        try:
            with keras.utils.custom_object_scope(self._custom_objects):
                copy = type(self.model).from_config(deepcopy(self._config))
        except (TypeError, ValueError) as error:
            raise ValueError(
                "The Keras model can't be rebuilt from its configuration; pass your own functions "
                f"and classes in it as custom_objects. Received: keras_model={self.model!r}"
            ) from error
        if self._build_config and not copy.built:
            copy.build_from_config(self._build_config)
        if inputs is not None and not (copy.built and self._weights.values):
            with keras.StatelessScope():
                keras3_step.call(copy, inputs, training=False)
        _copy_trainable_flags(self.model, copy)
        graph_variables.make_random_state_global(copy.variables)  # a Keras model saves them
        self._check_shapes(copy)
        return copy

    def _check_shapes(self, copy: Any) -> None:
        if not self._weights.values:
            return
        shapes = [variable.shape.as_list() for variable in copy.variables]
        expected = [list(value.shape) for value in self._weights.values]
        if shapes != expected:
            raise ValueError(
                "A copy of the Keras model, made from its configuration, has different variables; "
                f"get_config() must be complete. Received: shapes {shapes} in place of {expected}"
            )

    def _compile(self, copy: Any, with_optimizer: bool) -> Any:
        """Compiles the copy like the model, and returns its optimizer, or None."""
        with graph_variables.local_metrics(), keras.utils.custom_object_scope(self._custom_objects):
            if type(self.model).compile is not keras.Model.compile and _is_subclass(self.model):
                copy.compile_from_config(self.model.get_compile_config())
            else:
                settings = keras_internals.compile_settings(self.model)
                settings["optimizer"] = (
                    keras_optimizers.in_this_graph(self.model.optimizer) if with_optimizer else None
                )
                for name in ("metrics", "weighted_metrics"):
                    settings[name] = tf.nest.map_structure(fresh_metric, settings[name])
                copy.compile(**settings)
        if not with_optimizer:
            copy.optimizer = None
        return copy.optimizer

    # Inputs and targets

    def _inputs(self, features: Any) -> Any:
        """Returns features in the structure that the model is called with."""
        if not self.model.built or _is_subclass(self.model):
            return features
        is_sequential = isinstance(self.model, keras.Sequential)
        structure = None if is_sequential else self.model.input
        if isinstance(structure, Mapping):
            names = list(structure)
            tensors = model_inputs.order_tensors(names, features, "features", {})
            return dict(zip(names, tensors, strict=True))
        names = [tensor.name for tensor in self.model.inputs]
        # Earlier Keras named the input of a sequential model after its first layer.
        aliases = {f"{self.model.layers[0].name}_input": names[0]} if is_sequential else {}
        tensors = model_inputs.order_tensors(names, features, "features", aliases)
        return tensors if isinstance(structure, (list, tuple)) else tensors[0]

    def _targets(self, passed: Any, what: str) -> Any:
        """Returns labels or sample weights with the structure of the model's outputs."""
        names = self._output_names()
        if passed is None or names is None:
            return passed
        if what == "sample weights" and not isinstance(passed, (Mapping, list, tuple)):
            return passed  # the same weights for all outputs
        structure = None if isinstance(self.model, keras.Sequential) else self.model.output
        if isinstance(structure, Mapping):
            names = list(structure)
        tensors = model_inputs.order_tensors(names, passed, what, {})
        if isinstance(structure, Mapping):
            return dict(zip(names, tensors, strict=True))
        return tensors if isinstance(structure, (list, tuple)) else tensors[0]

    def _output_names(self) -> list[str] | None:
        if isinstance(self.model, keras.Sequential):
            return [self.model.layers[-1].name]
        return getattr(self.model, "output_names", None) or None

    def _named(self, outputs: Any) -> dict[str, Any]:
        return model_inputs.named_outputs(self._output_names(), outputs)


def _tf_variables(model: Any) -> list[Any]:
    return [variable.value for variable in model.variables]


def _check_has_no_tables(model: Any) -> None:
    """Checks that no layer has a lookup table, which a configuration does not hold."""
    names = [
        layer.name for layer in keras_internals.flattened_layers(model) if hasattr(layer, "lookup_table")
    ]
    if names:
        raise ValueError(
            f"The Keras model has layers with lookup tables, {names}, which an Estimator can't copy: call "
            "StringLookup, IntegerLookup and TextVectorization in input_fn, by Dataset.map(), and start "
            f"the model with their outputs. Received: keras_model={model!r}"
        )


def _copy_trainable_flags(model: Any, copy: Any) -> None:
    """Copies the layers' trainable flags; setting a layer's flag sets those of its sublayers."""
    layers, copies = keras_internals.flattened_layers(model), keras_internals.flattened_layers(copy)
    flags = {layer.name: layer.trainable for layer in layers}
    if len(layers) == len(copies):
        flags_in_order = [layer.trainable for layer in layers]
    else:
        flags_in_order = [flags.get(layer.name, layer.trainable) for layer in copies]
    for layer, flag in zip(copies, flags_in_order, strict=True):
        if layer.trainable != flag:
            layer.trainable = flag


def _is_subclass(model: Any) -> bool:
    """Returns whether the model is a user's subclass with its own call."""
    return getattr(model, "inputs", None) is None
