"""model_to_estimator: makes an Estimator of a compiled Keras model."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core.estimator import Estimator
from estimator_core.keras_models import model_weights
from estimator_core.keras_models.graph_model import NAME_BASED, OBJECT_BASED, Conversion, GraphModel
from estimator_core.spec.types import ReceiverFn

_FORMATS = (OBJECT_BASED, NAME_BASED)


class KerasEstimator(Estimator):
    """The Estimator of a Keras model, made by `model_to_estimator`."""

    def __init__(self, graph_model: GraphModel, model_dir: Any, config: Any):
        super().__init__(graph_model.model_fn, model_dir, config)
        self._graph_model = graph_model
        path = self.latest_checkpoint()
        if path and graph_model.conversion.checkpoint_format == OBJECT_BASED:
            model_weights.check_is_not_of_layers(path)

    @property
    def graph_model(self) -> GraphModel:
        """`GraphModel` of the Keras model."""
        return self._graph_model

    def experimental_export_all_saved_models(
        self,
        export_dir_base: str,
        input_receiver_fn_map: Mapping[str, ReceiverFn],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Exports as any Estimator; without a checkpoint, exports the Keras model's initial weights."""
        if not (checkpoint_path or self.latest_checkpoint()):
            path = os.path.join(self.model_dir, "keras", "keras_model.ckpt")
            checkpoint_path = self._graph_model.save_initial(path)
        return super().experimental_export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | os.PathLike[str] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: Any = None,
    checkpoint_format: str = OBJECT_BASED,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Estimator:
    """Returns an Estimator that trains, evaluates, predicts with and exports a Keras model.

    The model itself is not changed: each graph builds a copy, which starts from the model's
    current weights. `to_keras` brings trained weights back. The optimizer starts anew.

    `input_fn` gives features as a dict by the names of the model's inputs, as a tuple in their order,
    or as one tensor; labels in the same way by its outputs. Sample weights go into the features:
    `{"features": features, "sample_weights": weights}`.

    Example:
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])  # doctest: +SKIP
        >>> model.compile("adam", "mse", metrics=["mae"])  # doctest: +SKIP
        >>> estimator = model_to_estimator(model, model_dir="model")  # doctest: +SKIP
        >>> estimator.train(input_fn, steps=100)  # doctest: +SKIP
        >>> estimator.evaluate(eval_input_fn)["mae"]  # doctest: +SKIP

    Args:
        keras_model: Compiled model of Keras 3 or tf_keras.
        keras_model_path: Path of a saved, compiled model, instead of `keras_model`.
        custom_objects: Classes and functions by their names in the model's configuration.
        model_dir: See `Estimator`.
        config: See `Estimator`.
        checkpoint_format: "checkpoint" writes object-based checkpoints, which `tf.train.Checkpoint`
            restores into the Keras model; "saver" writes variables by name.
        metric_names_map: Dict of the names of all metrics in Keras to their names in evaluations.
        export_outputs: Dict of output name to a subclass of `export.ExportOutput`: one signature for
            each output. None exports all outputs in one signature.

    Raises:
        ValueError: Both or neither of `keras_model` and `keras_model_path` are given, the model is
            not compiled, or it can't be built in a graph.
        TypeError: `keras_model` is not a Keras model.

    Source: `tf.keras.estimator.model_to_estimator`. Ours takes subclassed models in both formats.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError(
            "Either keras_model or keras_model_path needs to be given, but not both. "
            f"Received: keras_model={keras_model!r}, keras_model_path={keras_model_path!r}"
        )
    if checkpoint_format not in _FORMATS:
        raise ValueError(
            f"Checkpoint format must be one of {_FORMATS}. Received: checkpoint_format={checkpoint_format!r}"
        )
    if keras_model is None:
        path = os.fspath(keras_model_path)  # type: ignore[arg-type]
        try:
            keras_model = tf.keras.models.load_model(path, custom_objects=dict(custom_objects or {}))
        except (OSError, TypeError, ValueError) as error:
            raise ValueError(
                "tf.keras can't load the model: load it yourself, with tf_keras if an earlier Keras saved "
                f"it, and pass it as keras_model. Received: keras_model_path={path!r}"
            ) from error
    conversion = Conversion(dict(custom_objects or {}), checkpoint_format, metric_names_map, export_outputs)
    graph_model = as_graph_model(keras_model, conversion)
    graph_model.check_is_trainable()
    return KerasEstimator(graph_model, model_dir, config)


def as_graph_model(model: Any, conversion: Conversion) -> GraphModel:
    import keras

    from estimator_core.keras_models.keras3_model import Keras3Model

    if isinstance(model, keras.Model):
        return Keras3Model(model, conversion)
    tf_keras = sys.modules.get("tf_keras")  # imported if the model is one of its
    if tf_keras is not None and isinstance(model, tf_keras.Model):
        from estimator_core.keras_models.tf_keras_model import TfKerasModel

        return TfKerasModel(model, conversion)
    raise TypeError(f"keras_model must be a Keras model. Received: keras_model={model!r}")
