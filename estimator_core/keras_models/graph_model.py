"""GraphModel: the interface of Keras models for Estimators, for any Keras."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE, EstimatorSpec
from estimator_core.spec.export_outputs import ExportOutput, PredictOutput

OBJECT_BASED = "checkpoint"
NAME_BASED = "saver"
GLOBAL_STEP_ATTRIBUTE = "estimator_global_step"
"""Name of the global step in object-based checkpoints, as in tf.estimator 2.15."""


@dataclasses.dataclass(frozen=True)
class Conversion:
    """Settings of the conversion of a Keras model to an Estimator.

    `metric_names_map`: dict of the metrics' names in Keras to names in evaluations; None keeps them.
    `export_outputs`: dict of output name to subclass of `ExportOutput`, for a signature of that output.
    "serving_default" takes all outputs; without it, they are served as they are.
    """

    custom_objects: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    checkpoint_format: str = OBJECT_BASED
    metric_names_map: Mapping[str, str] | None = None
    export_outputs: Mapping[str, Callable[[Any], ExportOutput]] | None = None

    def renamed_metrics(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the metrics by their names in evaluations."""
        if self.metric_names_map is None:
            return dict(metrics)
        missing = sorted(set(metrics) - set(self.metric_names_map))
        if missing:
            raise ValueError(
                "metric_names_map must have all metrics of the Keras model; it lacks "
                f"{missing}. Received: metric_names_map={dict(self.metric_names_map)}"
            )
        unknown = sorted(set(self.metric_names_map) - set(metrics))
        if unknown:
            raise ValueError(
                f"metric_names_map has names that are not metrics of the Keras model: {unknown}. Its "
                f"metrics: {sorted(metrics)}. Received: metric_names_map={dict(self.metric_names_map)}"
            )
        return {self.metric_names_map[name]: metric for name, metric in metrics.items()}

    def signatures(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput] | None:
        """Returns the `ExportOutput`s of the predictions; None leaves them to the Estimator."""
        if self.export_outputs is None:
            return None
        outputs = {DEFAULT_SERVING_SIGNATURE: PredictOutput, **self.export_outputs}
        tensors = {DEFAULT_SERVING_SIGNATURE: predictions, **predictions}
        if not outputs.keys() <= tensors.keys():
            raise ValueError(
                f"The keys of export_outputs must be names of the model's outputs, "
                f"{sorted(predictions)}. Received: {sorted(self.export_outputs)}"
            )
        return {name: make_output(tensors[name]) for name, make_output in outputs.items()}


class GraphModel(abc.ABC):
    """A Keras model that can be rebuilt in any graph; the model itself is not changed."""

    def __init__(self, model: Any, conversion: Conversion):
        self.model = model
        self.conversion = conversion

    @abc.abstractmethod
    def check_is_trainable(self) -> None:
        """Checks that an Estimator can train the model."""

    @abc.abstractmethod
    def model_fn(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
        """Returns the spec of a copy of the model in the current graph."""

    @abc.abstractmethod
    def save_initial(self, path: str) -> str:
        """Writes the model as a checkpoint of the Estimator, and returns the path."""

    @abc.abstractmethod
    def load(self, checkpoint_path: str) -> Any:
        """Writes the weights of a checkpoint of the Estimator into the model, and returns it."""
