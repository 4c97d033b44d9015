"""to_keras: copies the trained weights of an Estimator back to the Keras model."""

from __future__ import annotations

from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.keras_models.graph_model import NAME_BASED, Conversion
from estimator_core.keras_models.model_to_estimator import KerasEstimator, as_graph_model


def to_keras(estimator: Estimator, keras_model: Any = None, checkpoint_path: str | None = None) -> Any:
    """Writes the trained weights of an Estimator to a Keras model, and returns it.

    All variables are written, including moving statistics and the states of random numbers; the
    model's optimizer is not changed.

    Example:
        >>> estimator = model_to_estimator(model)  # doctest: +SKIP
        >>> estimator.train(input_fn, steps=100)  # doctest: +SKIP
        >>> to_keras(estimator).predict(x)  # doctest: +SKIP

    Args:
        estimator: Estimator from `model_to_estimator`; with `keras_model`, any Estimator whose
            checkpoints have the names of that model's variables.
        keras_model: Built Keras model to write to. None writes to the model that the Estimator was made
            from.
        checkpoint_path: Checkpoint to read; None takes the newest.

    Returns:
        The Keras model.

    Raises:
        ValueError: There is no checkpoint, it lacks variables of the model, or there is no model.
    """
    checkpoint_path = checkpoint_path or estimator.latest_checkpoint()
    if not checkpoint_path:
        raise ValueError(f"Couldn't find trained model at {estimator.model_dir}.")
    if isinstance(estimator, KerasEstimator):
        graph_model = estimator.graph_model
        if keras_model is not None:
            graph_model = as_graph_model(keras_model, graph_model.conversion)
        return graph_model.load(checkpoint_path)
    if keras_model is None:
        raise ValueError(
            "keras_model is needed for an Estimator that model_to_estimator did not make. "
            f"Received: estimator={estimator!r}"
        )
    return as_graph_model(keras_model, Conversion(checkpoint_format=NAME_BASED)).load(checkpoint_path)
