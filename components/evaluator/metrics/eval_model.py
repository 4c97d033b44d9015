"""The evaluation model that a Trainer writes: labels and predictions for serialized raw examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from components.errors import SettingError
from components.nearest import nearest_first

_TAG = "eval"
_SIGNATURE = "eval"
_LABELS = "labels"
_PREDICTIONS_PREFIX = "predictions/"
_LABELS_PREFIX = "labels/"

# Default prediction_key, first match first: the probabilities of a binary head, of a multi-class
# head, the values of a regression head.
_DEFAULT_PREDICTION_KEYS = ("logistic", "probabilities", "predictions")
_ALL_CLASSES = "all_classes"


@dataclass(frozen=True)
class Evaluated:
    """Labels and predictions of a batch, from an evaluation model.

    Attributes:
        labels: `[batch_size]`, or `[batch_size, label_dimension]` above 1; numbers, or class ids
            for labels that are strings.
        predictions: `[batch_size]` or `[batch_size, prediction_dimension]` above 1.
    """

    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]


class EvalModel:
    """An evaluation SavedModel, reduced to labels and predictions.

    The labels are those of training, even if `preprocessing_fn` derives them: the model contains
    all steps from the raw example.

    Args:
        path: Directory of the SavedModel; has the tag `eval` and the signature `eval`.
        prediction_key: The prediction to evaluate. Default: `logistic`, `probabilities` or
            `predictions`, whichever comes first, or the only prediction of the model.
        label_key: The label to evaluate, if the model has several by name.

    Attributes:
        prediction: Name of the evaluated prediction, such as `logistic`.

    Raises:
        ValueError: The model lacks the label or prediction, or several match.
    """

    def __init__(self, path: str, prediction_key: str = "", label_key: str = "") -> None:
        self._path = path
        model = tf.saved_model.load(path, tags=[_TAG])
        signature = model.signatures[_SIGNATURE]
        inputs = signature.structured_input_signature[1]
        if len(inputs) != 1:
            raise ValueError(
                f"The evaluation model {path} must take one input, serialized tf.Examples. "
                f"Received: {sorted(inputs)}"
            )
        outputs = {name: tensor.name for name, tensor in signature.structured_outputs.items()}
        label = _find_label(outputs, label_key, path)
        prediction = _find_prediction(outputs, prediction_key, path)
        fetches = {"labels": outputs[label], "predictions": outputs[prediction]}
        # Keyed like the prediction itself when the model has several heads: "head/all_classes".
        classes = prediction.rpartition("/")[0] + f"/{_ALL_CLASSES}"
        self._says_classes = classes in outputs
        if self._says_classes:
            fetches["classes"] = outputs[classes]
        # Fetching only these tensors skips the metrics, which would take more time than the rest.
        feeds = [signature.inputs[0].name]
        # Without input_signature, TensorFlow formats all examples for an error that it catches.
        given: Any = (tuple(inputs.values()), {})
        labels = {"labels": fetches["labels"]}
        self._function = model.prune(feeds, fetches, input_signature=given)
        self._labels_function = model.prune(feeds, labels, input_signature=given)
        self._label = label
        self.prediction = prediction.removeprefix(_PREDICTIONS_PREFIX)
        self._classes: npt.NDArray[Any] | None = None
        self._model = model  # keeps variables and tables alive

    def __call__(self, serialized: npt.NDArray[Any]) -> Evaluated:
        """Returns labels and predictions of serialized tf.Examples `[batch_size]`.

        Raises:
            ValueError: A label is not in the vocabulary, or is a string without a vocabulary.
        """
        outputs = self._run(serialized)
        return Evaluated(self._numbers(outputs["labels"]), _squeeze(outputs["predictions"]))

    def predictions(self, serialized: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the predictions alone; the model may not know the labels."""
        return _squeeze(self._run(serialized)["predictions"])

    def labels(self, serialized: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the labels alone, which is cheaper than predicting.

        Raises:
            ValueError: A label is not in the vocabulary, or is a string without a vocabulary.
        """
        self.classes(serialized[:1])
        outputs = self._labels_function(tf.constant(serialized))
        return self._numbers(outputs["labels"].numpy())

    def classes(self, serialized: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """Returns the names of the classes in their order; None if the model has no names.

        Args:
            serialized: Any example, to run the model on.
        """
        if self._classes is None and self._says_classes:
            self._run(serialized)
        return self._classes

    def _run(self, serialized: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        outputs = {k: v.numpy() for k, v in self._function(tf.constant(serialized)).items()}
        classes = outputs.get("classes")
        if self._classes is None and classes is not None and classes.size:
            self._classes = classes.reshape(-1, classes.shape[-1])[0]
        return outputs

    def _numbers(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        labels = _squeeze(values)
        if labels.dtype.kind in "OSU":
            return self._class_ids(labels)
        return labels.astype(np.int64) if labels.dtype.kind == "b" else labels

    def _class_ids(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        vocabulary = self._classes
        if vocabulary is None and labels.size:
            raise ValueError(
                f"{self._label!r} of {self._path} are strings, and there is no {_ALL_CLASSES!r} "
                "among its predictions to read their class ids from. Canned classifiers have it."
            )
        vocabulary = np.zeros(0, object) if vocabulary is None else vocabulary
        ids = {word: i for i, word in enumerate(vocabulary)}
        unknown = sorted({label for label in labels.flat if label not in ids})
        if unknown:
            raise ValueError(
                f"The label {unknown[0]!r} is not one of the model's classes: {list(vocabulary)}"
            )
        flat = np.fromiter((ids[label] for label in labels.flat), np.int64, labels.size)
        return flat.reshape(labels.shape)


def _find_label(outputs: Mapping[str, str], label_key: str, path: str) -> str:
    if _LABELS in outputs:
        return _LABELS  # the only one, whatever label_key says
    names = [name for name in outputs if name.startswith(_LABELS_PREFIX)]
    if label_key and f"{_LABELS_PREFIX}{label_key}" in names:
        return f"{_LABELS_PREFIX}{label_key}"
    if len(names) == 1 and not label_key:
        return names[0]
    choices = [name.removeprefix(_LABELS_PREFIX) for name in names]
    raise SettingError(
        f"Which label of {path} to evaluate? Set label_key of the ModelSpec to one of: "
        f"{', '.join(nearest_first(label_key, choices)) or 'none; the model has no labels'}. "
        f"Received: label_key={label_key!r}"
    )


def _find_prediction(outputs: Mapping[str, str], prediction_key: str, path: str) -> str:
    names = [name for name in outputs if name.startswith(_PREDICTIONS_PREFIX)]
    wanted = (prediction_key,) if prediction_key else _DEFAULT_PREDICTION_KEYS
    for key in wanted:
        if f"{_PREDICTIONS_PREFIX}{key}" in names:
            return f"{_PREDICTIONS_PREFIX}{key}"
    if len(names) == 1 and not prediction_key:
        return names[0]
    choices = [name.removeprefix(_PREDICTIONS_PREFIX) for name in names]
    raise ValueError(
        f"Which prediction of {path} to evaluate? Set prediction_key of the ModelSpec to one of: "
        f"{', '.join(nearest_first(prediction_key, choices)) or 'none; the model has no predictions'}. "
        f"Received: prediction_key={prediction_key!r}"
    )


def _squeeze(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns `[batch_size, 1]` as `[batch_size]`, any other shape unchanged."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
