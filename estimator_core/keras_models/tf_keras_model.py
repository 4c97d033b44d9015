"""A model of tf_keras, the Keras of tf.estimator's time, in the graphs of an Estimator."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import keras_internals, keras_optimizers
from estimator_core.keras_models import model_inputs
from estimator_core.keras_models.graph_model import Conversion, GraphModel
from estimator_core.keras_models.live_objects import fresh_metric
from estimator_core.keras_models.model_weights import ModelWeights
from estimator_core.optimizers.minimize import minimize
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys


class TfKerasModel(GraphModel):
    """A compiled model of tf_keras: functional, sequential, or a subclass with a configuration.

    In a graph, tf_keras has special layers, optimizers and metrics for graphs, which
    tf.estimator 2.15 trained with; each graph gets a copy made of them.

    `model`: the tf_keras model; its current weights are the initial ones.
    """

    def __init__(self, model: Any, conversion: Conversion):
        super().__init__(model, conversion)
        if not keras_internals.is_functional(model):
            _check_has_configuration(model)
        if isinstance(model.optimizer, (list, tuple)):
            raise ValueError(
                "A WideDeepModel with two optimizers can't be made an Estimator: compile it with one, or use "
                "DNNLinearCombinedClassifier or DNNLinearCombinedRegressor, which take one for each part. "
                f"Received: optimizer={list(model.optimizer)}"
            )
        # Read now: while a copy is made, the model's class is changed.
        self._settings = keras_internals.tf_keras_compile_settings(model) if model.optimizer else {}
        self._optimizer = _as_legacy(model.optimizer)
        self._num_open_copies = 0
        # From Keras' session if eager execution is disabled.
        values = model.get_weights() if model.built else []
        self._weights = ModelWeights(values, conversion.checkpoint_format)

    def check_is_trainable(self) -> None:
        """Checks that an Estimator can train the model."""
        if not self.model.optimizer:
            raise ValueError(
                "The given keras model has not been compiled yet: call its compile() first. Received: "
                f"keras_model={self.model!r}"
            )

    def model_fn(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
        """Returns the spec of a copy of the model in the current graph."""
        del params
        features, labels = model_inputs.as_tensors((features, labels))
        features, sample_weights = model_inputs.split_sample_weights(features)
        inputs = features  # a subclass takes any structure
        if self.model.input_names:
            inputs = model_inputs.order_tensors(self.model.input_names, features, "features", {})
        if labels is None and mode != ModeKeys.PREDICT:
            model_inputs.check_needs_no_labels(self.model)
        is_training = mode == ModeKeys.TRAIN
        with self._copy(inputs, labels, is_training, mode != ModeKeys.PREDICT) as copy:
            predictions = dict(zip(copy.output_names, copy.outputs, strict=True))
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(
                    mode,
                    predictions=predictions,
                    export_outputs=self.conversion.signatures(predictions),
                    scaffold=self._weights.scaffold(copy, copy.weights),
                )
            if sample_weights is not None:
                weights = _targets(copy, sample_weights, "sample weights")
                keras_internals.weigh_losses(copy, weights)
            if not is_training:
                metrics = {metric.name: metric for metric in copy.metrics}
                return EstimatorSpec(
                    mode,
                    predictions=predictions,
                    loss=copy.total_loss,
                    eval_metric_ops=self.conversion.renamed_metrics(metrics),
                    scaffold=self._weights.scaffold(copy, copy.weights),
                )
            optimizer, train_op = self._train_op(copy)
            scaffold = self._weights.scaffold(copy, copy.weights, optimizer, for_writing=True)
            return EstimatorSpec(
                mode, predictions=predictions, loss=copy.total_loss, train_op=train_op, scaffold=scaffold
            )

    def save_initial(self, path: str) -> str:
        """Writes the model as a checkpoint of the Estimator, and returns the path."""
        with tf.Graph().as_default() as graph:
            tf1.train.create_global_step(graph)
            with self._copy(self._placeholders(), None, False, False) as copy:
                return self._weights.save(copy, copy.weights, path)

    def load(self, checkpoint_path: str) -> Any:
        """Writes the weights of a checkpoint of the Estimator into the model, and returns it."""
        with tf.Graph().as_default(), self._copy(self._placeholders(), None, False, False) as copy:
            values = self._weights.read(copy.weights, checkpoint_path)
        self.model.set_weights(values)
        return self.model

    @contextlib.contextmanager
    def _copy(self, inputs: Any, labels: Any, is_training: bool, is_compiled: bool) -> Iterator[Any]:
        """Makes a copy of the model in the current graph.

        Making graph layers changes the classes of all such layers to those for graphs, also for the
        layers of eager models. They are changed back afterwards, or the user's model would be broken;
        but only after the copies of all replicas, each in its own thread, are complete.
        """
        self._num_open_copies += 1
        try:
            with warnings.catch_warnings():  # no other way sets the phase of a whole graph model
                warnings.filterwarnings("ignore", ".*set_learning_phase", UserWarning)
                tf_keras.backend.set_learning_phase(is_training)
            copy = keras_internals.clone_optimizer(self.model, inputs, self.conversion.custom_objects)
            if is_compiled:
                settings = dict(self._settings)
                for name in ("metrics", "weighted_metrics"):
                    # Training has none: workers in step would sum up their states in each step.
                    metrics = None if is_training else settings[name]
                    settings[name] = tf.nest.map_structure(fresh_metric, metrics)
                # Training makes the update by the model's own optimizer.
                settings["optimizer"] = tf_keras.optimizers.legacy.SGD()
                copy.compile(**settings, target_tensors=_targets(copy, labels, "labels"))
            yield copy
        finally:
            self._num_open_copies -= 1
            if not self._num_open_copies:
                keras_internals.restore_eager_classes(self.model)

    def _train_op(self, copy: Any) -> tuple[Any, Any]:
        """Returns the model's optimizer in the current graph, and the op of one training step."""
        global_step = tf1.train.get_global_step()
        variables = copy.trainable_weights
        if not variables:
            raise ValueError(f"The Keras model has no trainable variables. Received: {self.model!r}")
        with tf.name_scope("training"):  # part of the variables' names in tf.estimator 2.15
            if isinstance(self._optimizer, tf1.train.Optimizer):
                loss = current_execution().share_of_mean(copy.total_loss)
                train_op = minimize(self._optimizer, loss, variables)
                return self._optimizer, tf.group(train_op, *keras_internals.tf_keras_updates(copy))
            optimizer = keras_optimizers.in_this_graph(self._optimizer, global_step)
            keras_optimizers.build(optimizer, variables)  # its variables must not wait for the loss
            gradients = tf.gradients(copy.total_loss, variables)
            with tf.control_dependencies([copy.total_loss]):
                update = keras_optimizers.apply_gradients(
                    optimizer, list(zip(gradients, variables, strict=True))
                )
        updates = [update, *keras_internals.tf_keras_updates(copy)]
        if not keras_optimizers.increments(optimizer, global_step):
            with tf.control_dependencies(updates):
                updates = [global_step.assign_add(1, read_value=False)]
        return optimizer, tf.group(*updates)

    def _placeholders(self) -> Any:
        """Returns inputs to call a copy with; None for a functional model, which makes its own."""
        if keras_internals.is_functional(self.model):
            return None
        if not self._weights.values:
            raise ValueError(
                "The Keras model has no variables yet: call the model once, or its build(), before it is "
                f"made an Estimator. Received: keras_model={self.model!r}"
            )
        (inputs,), _ = self.model.save_spec()
        return tf.nest.map_structure(lambda spec: tf1.placeholder(spec.dtype, spec.shape), inputs)


def _check_has_configuration(model: Any) -> None:
    """Checks that a subclass can be rebuilt from its configuration."""
    try:
        type(model).from_config(model.get_config())
    except (NotImplementedError, TypeError) as error:
        raise ValueError(
            "The Keras model can't be rebuilt from its configuration: give its class a get_config() that "
            f"returns the arguments of its constructor. Received: keras_model={model!r}"
        ) from error


def _targets(model: Any, passed: Any, what: str) -> list[Any] | None:
    """Returns labels or sample weights in the order of the model's outputs."""
    if passed is None:
        return None
    return model_inputs.order_tensors(model.output_names, passed, what, {})


def _as_legacy(optimizer: Any) -> Any:
    """Returns the equivalent `tf_keras.optimizers.legacy` optimizer if there is one, else the given one.

    An optimizer of TensorFlow itself, which Keras wraps, is returned without the wrapper.

    Source: tf.estimator 2.15 trains with it, and its checkpoints have its names.
    """
    if isinstance(getattr(optimizer, "optimizer", None), tf1.train.Optimizer):
        return optimizer.optimizer
    name = type(optimizer).__name__
    if (
        type(optimizer) is not getattr(tf_keras.optimizers, name, None)
        or not hasattr(tf_keras.optimizers.legacy, name)
        or optimizer.weight_decay
        or optimizer.use_ema
    ):
        return optimizer
    return keras_internals.legacy_optimizer_like(optimizer)
