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

# What is evaluated when no prediction_key is configured, first match first: the probabilities of a
# binary head, of a multi-class head, the values of a regression head.
_DEFAULT_PREDICTION_KEYS = ("logistic", "probabilities", "predictions")
_ALL_CLASSES = "all_classes"


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation model says of a batch.

    Attributes:
        labels: `[batch_size]`, or `[batch_size, label_dimension]` above 1; numbers, or class ids
            where the labels are strings.
        predictions: `[batch_size]` or `[batch_size, prediction_dimension]` above 1.
    """

    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]


class EvalModel:
    """An evaluation SavedModel, cut down to labels and predictions.

    The labels are those of training, also when `preprocessing_fn` derives them: the model holds
    the whole way from the raw example.

    Args:
        path: Directory of the SavedModel; has the tag `eval` and the signature `eval`.
        prediction_key: The prediction to evaluate. Default: `logistic`, `probabilities` or
            `predictions`, whichever comes first, or the only one that there is.
        label_key: The label to evaluate, where the model has several by name.

    Raises:
        ValueError: The model lacks what is asked for, or it is not clear what to evaluate.
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
        if classes in outputs:
            fetches["classes"] = outputs[classes]
        # Fetching less than the signature skips the metrics, which would cost more than the rest.
        self._function = model.prune([signature.inputs[0].name], fetches)
        self._label = label
        self._model = model  # Keeps variables and tables alive.

    def __call__(self, serialized: npt.NDArray[Any]) -> Evaluated:
        """Returns labels and predictions of serialized tf.Examples `[batch_size]`.

        Raises:
            ValueError: A label is not in the vocabulary, or is a string without a vocabulary.
        """
        outputs = {k: v.numpy() for k, v in self._function(tf.constant(serialized)).items()}
        labels = _squeeze(outputs["labels"])
        if labels.dtype.kind in "OSU":
            labels = self._class_ids(labels, outputs.get("classes"))
        elif labels.dtype.kind == "b":
            labels = labels.astype(np.int64)
        return Evaluated(labels, _squeeze(outputs["predictions"]))

    def _class_ids(
        self, labels: npt.NDArray[Any], classes: npt.NDArray[Any] | None
    ) -> npt.NDArray[np.int64]:
        if classes is None:
            raise ValueError(
                f"{self._label!r} of {self._path} are strings, and there is no {_ALL_CLASSES!r} "
                "among its predictions that tells their class ids. Canned classifiers have it."
            )
        vocabulary = classes.reshape(-1, classes.shape[-1])[0]
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
        return _LABELS  # The only one; a label_key can but name it.
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
    """Returns `[batch_size, 1]` as `[batch_size]`, anything else as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
