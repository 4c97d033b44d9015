"""Outputs of an exported model: one `ExportOutput` becomes one signature of the SavedModel."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1


class ExportOutput(abc.ABC):
    """One output of an exported model.

    Any class with `as_signature_def` counts as a subclass.

    Source: `tf.estimator.export.ExportOutput`.
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        """Returns True for a class with `as_signature_def`, if this is the base class."""
        has_method = callable(getattr(kind, "as_signature_def", None))
        return True if cls is ExportOutput and has_method else NotImplemented

    @abc.abstractmethod
    def as_signature_def(self, receiver_tensors: Mapping[str, tf.Tensor]) -> Any:
        """Returns the `SignatureDef` that maps `receiver_tensors` to this output.

        Args:
            receiver_tensors: The tensors that a client feeds, by name.

        Raises:
            ValueError: The receiver tensors can't feed this kind of signature.
        """


def _signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method_name: str) -> Any:
    build = tf1.without_warning(tf1.saved_model.build_tensor_info)
    return tf1.saved_model.build_signature_def(
        inputs={name: build(tensor) for name, tensor in inputs.items()},
        outputs={name: build(tensor) for name, tensor in outputs.items()},
        method_name=method_name,
    )


def _check_serialized(receiver_tensors: Mapping[str, tf.Tensor], values: Any, kind: str) -> None:
    """Checks the tensors of classify and regress requests: serialized tf.Examples in, float32 out."""
    tensors = [*receiver_tensors.values()]
    if len(tensors) != 1 or not tf.is_tensor(tensors[0]) or tensors[0].dtype != tf.string:
        raise ValueError(
            f"{kind} signatures take a single tensor input of type tf.string (serialized "
            f"tf.Examples). Received: receiver_tensors={dict(receiver_tensors)}"
        )
    if values is not None and values.dtype != tf.float32:
        raise ValueError(f"{kind} signatures return float32 numbers. Received: {values}")


class ClassificationOutput(ExportOutput):
    """Class scores, class labels, or both.

    Args:
        scores: float `Tensor`, `[batch_size, n_classes]`, or None.
        classes: string `Tensor`, `[batch_size, n_classes]`, or None.

    Raises:
        ValueError: Both are None, or one has the wrong dtype.

    Source: `tf.estimator.export.ClassificationOutput`.
    """

    def __init__(self, scores: Any = None, classes: Any = None):
        if scores is None and classes is None:
            raise ValueError("ClassificationOutput needs `scores`, `classes` or both; both are None.")
        if scores is not None and not (_is_dense(scores) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor. Received: {scores}")
        if classes is not None and not (_is_dense(classes) and classes.dtype == tf.string):
            raise ValueError(f"Classification classes must be a string Tensor. Received: {classes}")
        self._scores = scores
        self._classes = classes

    @property
    def scores(self) -> Any:
        """The class scores, or None."""
        return self._scores

    @property
    def classes(self) -> Any:
        """The class labels, or None."""
        return self._classes

    def as_signature_def(self, receiver_tensors: Mapping[str, tf.Tensor]) -> Any:
        """Returns a classify signature over serialized tf.Examples."""
        _check_serialized(receiver_tensors, self._scores, "Classification")
        outputs = {"classes": self._classes, "scores": self._scores}
        present = {name: tensor for name, tensor in outputs.items() if tensor is not None}
        (examples,) = receiver_tensors.values()
        return _signature({"inputs": examples}, present, "tensorflow/serving/classify")


class RegressionOutput(ExportOutput):
    """A regression value.

    Args:
        value: float `Tensor`, `[batch_size]` or `[batch_size, 1]`.

    Raises:
        ValueError: `value` is not a float `Tensor`.

    Source: `tf.estimator.export.RegressionOutput`.
    """

    def __init__(self, value: Any):
        if not (_is_dense(value) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor. Received: {value}")
        self._value = value

    @property
    def value(self) -> Any:
        """The regression value."""
        return self._value

    def as_signature_def(self, receiver_tensors: Mapping[str, tf.Tensor]) -> Any:
        """Returns a regress signature over serialized tf.Examples."""
        _check_serialized(receiver_tensors, self._value, "Regression")
        (examples,) = receiver_tensors.values()
        return _signature({"inputs": examples}, {"outputs": self._value}, "tensorflow/serving/regress")


class PredictOutput(ExportOutput):
    """Any named tensors.

    Args:
        outputs: `Tensor`, served as "output", or dict of name to `Tensor`. A tuple of strings is
            a name too, served with "/" in between.

    Raises:
        ValueError: A key is not a name, or a value is not a dense `Tensor`.

    Source: `tf.estimator.export.PredictOutput`.
    """

    def __init__(self, outputs: Any):
        self._outputs = _named_tensors(outputs, "output")
        for name, value in self._outputs.items():
            if not _is_dense(value):
                raise ValueError(
                    f"Prediction output value must be a dense Tensor. Received: {name}={value!r}"
                )

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, tf.Tensor]) -> Any:
        """Returns a predict signature."""
        return _signature(receiver_tensors, self._outputs, "tensorflow/serving/predict")


class EvalOutput(ExportOutput):
    """The results of an evaluation: loss, predictions, metrics, and labels and features if they are known.

    Args:
        loss: Scalar `Tensor` or dict of name to scalar `Tensor`, or None.
        predictions: `Tensor` or dict of name to `Tensor`, or None.
        metrics: Dict of name to `(value, update_op)`, or None.
        labels: `Tensor` or dict of name to `Tensor`, or None.
        features: `Tensor` or dict of name to `Tensor`, or None. Sparse ones are left out.

    Source: `tf.estimator.export.EvalOutput`. Only ours has labels and features: a label or a weight may be
    derived from the raw example, and metrics computed outside of the process need them.
    """

    LOSS_NAME = "loss"
    PREDICTIONS_NAME = "predictions"
    METRICS_NAME = "metrics"
    METRIC_VALUE_SUFFIX = "value"
    METRIC_UPDATE_SUFFIX = "update_op"
    _METHOD = "eval"

    def __init__(
        self,
        loss: Any = None,
        predictions: Any = None,
        metrics: Mapping[str, Any] | None = None,
        labels: Any = None,
        features: Any = None,
    ):
        outputs: dict[str, Any] = {}
        if isinstance(features, Mapping):
            features = {name: value for name, value in features.items() if isinstance(value, tf.Tensor)}
        groups = (
            (self.LOSS_NAME, loss),
            (self.PREDICTIONS_NAME, predictions),
            ("labels", labels),
            ("features", features),
        )
        for group, tensors in groups:
            if isinstance(tensors, Mapping):
                outputs |= {f"{group}/{_joined(name)}": value for name, value in tensors.items()}
            elif tensors is not None:
                outputs[group] = _one_tensor(tensors) if group == self.LOSS_NAME else tensors
        for name, (value, update_op) in (metrics or {}).items():
            metric = f"{self.METRICS_NAME}/{_joined(name)}"
            outputs[f"{metric}/{self.METRIC_VALUE_SUFFIX}"] = _one_tensor(value)
            outputs[f"{metric}/{self.METRIC_UPDATE_SUFFIX}"] = _one_tensor(update_op)
        self._outputs = _named_tensors(outputs, "output")

    @property
    def outputs(self) -> dict[str, Any]:
        """Every tensor by its name in the signature."""
        return self._outputs

    @property
    def loss(self) -> dict[str, Any] | None:
        """The loss by its name in the signature, or None."""
        return self._group(self.LOSS_NAME)

    @property
    def predictions(self) -> dict[str, Any] | None:
        """The predictions by their names in the signature, or None."""
        return self._group(self.PREDICTIONS_NAME)

    @property
    def metrics(self) -> dict[str, Any] | None:
        """Values and update ops of the metrics by their names in the signature, or None."""
        return self._group(self.METRICS_NAME)

    def _group(self, name: str) -> dict[str, Any] | None:
        start = f"{name}/"
        return {k: v for k, v in self._outputs.items() if k == name or k.startswith(start)} or None

    def as_signature_def(self, receiver_tensors: Mapping[str, tf.Tensor]) -> Any:
        """Returns a signature of the method "tensorflow/supervised/<mode>"."""
        return _signature(receiver_tensors, self._outputs, f"tensorflow/supervised/{self._METHOD}")


class TrainOutput(EvalOutput):
    """The results of a training step, with the names of `EvalOutput`: loss, predictions.

    Source: the export of `tf.estimator.Estimator` for the mode TRAIN.
    """

    _METHOD = "training"


def _is_dense(value: Any) -> bool:
    is_composite = isinstance(value, (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices))
    return not is_composite and (tf.is_tensor(value) or isinstance(value, tf.Variable))


def as_our_output(output: Any) -> Any:
    """Returns an output of TensorFlow's own classes, which `tf.estimator.export` offered, as one of ours.

    Any other output is returned as it is.
    """
    method = getattr(output, "as_signature_def", None)
    if not getattr(method, "__module__", "").startswith("tensorflow."):
        return output
    for kind, names in (
        (ClassificationOutput, ("scores", "classes")),
        (RegressionOutput, ("value",)),
        (PredictOutput, ("outputs",)),
    ):
        if all(hasattr(output, name) for name in names):
            return kind(*(getattr(output, name) for name in names))
    return output


def _one_tensor(value: Any) -> Any:
    """Returns `value`; for an operation, a constant that depends on it, since signatures hold tensors."""
    if isinstance(value, tf.Operation):
        with tf.control_dependencies([value]):
            return tf.constant(0, dtype=tf.int32, name="metric_op_wrapper")
    return value


def _named_tensors(tensors: Any, single_name: str) -> dict[str, Any]:
    if not isinstance(tensors, Mapping):
        tensors = {single_name: tensors}
    tensors = {_joined(name): value for name, value in tensors.items()}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise ValueError(f"Prediction output key must be a string. Received: {name!r}")
        if not (tf.is_tensor(value) or isinstance(value, tf.Variable)):
            raise ValueError(f"Prediction output value must be a Tensor. Received: {name}={value!r}")
    return tensors


def _joined(name: Any) -> Any:
    """Returns a key as one string: several heads have tuples of strings as keys."""
    return "/".join(map(_joined, name)) if isinstance(name, tuple) else name
