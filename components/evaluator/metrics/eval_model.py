"""Evaluation models: labels, predictions and metrics of serialized raw examples.

A Trainer writes one, and so did `tfma.export` with TensorFlow 1.15 to 2.15. They are graphs, so they are
loaded into a session: as TF2 objects, those of earlier years cannot be loaded.
"""

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from components.errors import SettingError
from components.nearest import nearest_first
from estimator_core import tf1

_TAG = "eval"
_SIGNATURE = "eval"
_LABELS = "labels"
_FEATURES = "features"
_PREDICTIONS = "predictions"
_METRICS_PREFIX = "metrics/"
_VALUE, _UPDATE = "/value", "/update_op"
# Names in the signature's inputs of `tfma.export` that are not fed.
_NOT_FED = ("features", "input_refs", "iterator_initializer", "labels", "tfma")

# Default prediction_key, first match first: the probabilities of a binary head, of a multi-class
# head, the values of a regression head.
_DEFAULT_PREDICTION_KEYS = ("logistic", "probabilities", "predictions")
_ALL_CLASSES = "all_classes"


@dataclass(frozen=True)
class Evaluated:
    """Labels and predictions of a batch, from an evaluation model."""

    # `[batch_size]`, or `[batch_size, label_dimension]` above 1; numbers, or class ids for labels
    # that are strings.
    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]  # `[batch_size]` or `[batch_size, prediction_dimension]` above 1


class EvalGraph:
    """An evaluation SavedModel in its own session, which all threads of a process share; see `load_graph`."""

    def __init__(self, path: str) -> None:
        self.path = path
        with tf.Graph().as_default() as graph:
            self._session = tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True))
            load = tf1.without_warning(tf1.saved_model.load)
            # Devices are those of the machine that wrote the model.
            meta_graph = load(self._session, [_TAG], path, clear_devices=True)
            signature = meta_graph.signature_def[_SIGNATURE]
            inputs, outputs = dict(signature.inputs), dict(signature.outputs)
            fed = [name for name in inputs if name.partition("/")[0] not in _NOT_FED]
            if len(fed) != 1 or "iterator_initializer" in inputs:
                raise ValueError(
                    f"The evaluation model {path} must take one input, serialized tf.Examples. "
                    f"Received: {sorted(inputs)}"
                )
            self._examples = graph.get_tensor_by_name(inputs[fed[0]].name)
            # `tfma.export` wrote labels and features among the inputs, estimator_core writes them as outputs.
            infos = {**inputs, **outputs}
            self.labels = _tensors(graph, infos, _LABELS)
            dense = {name: info for name, info in infos.items() if info.WhichOneof("encoding") == "name"}
            self.features = _tensors(graph, dense, _FEATURES)
            self.predictions = _tensors(graph, outputs, _PREDICTIONS)
            names = [name.removesuffix(_UPDATE) for name in outputs if name.endswith(_UPDATE)]
            self.metric_names = tuple(sorted(name.removeprefix(_METRICS_PREFIX) for name in names))
            self._make_metrics(graph, names, outputs)
            graph.finalize()
        self._lock = threading.Lock()  # the threads share the variables of the metrics

    def _make_metrics(self, graph: Any, names: Sequence[str], outputs: Mapping[str, Any]) -> None:
        make = self._session.make_callable
        variables = tf1.get_collection(tf1.GraphKeys.METRIC_VARIABLES)
        placeholders = [tf1.placeholder(v.dtype.base_dtype, v.shape) for v in variables]
        # Lists of operations, as tf.group would change some that the session has run already; none is empty.
        no_op = tf.no_op()
        assigned = [v.assign(value).op for v, value in zip(variables, placeholders, strict=True)]
        self._assign = make([*assigned, no_op], placeholders)
        self._reset = make([*[variable.initializer for variable in tf1.local_variables()], no_op])
        self._read = make([*variables, no_op])
        updates = [graph.get_tensor_by_name(outputs[name + _UPDATE].name) for name in names]
        self._update = make(updates, [self._examples])
        values = [graph.get_tensor_by_name(outputs[name + _VALUE].name) for name in names]
        metric_names = [name.removeprefix(_METRICS_PREFIX) for name in names]
        self._values = make(dict(zip(metric_names, values, strict=True)))

    def fetch(self, tensors: Mapping[str, Any]) -> Any:
        """Returns a function from serialized tf.Examples to the values of tensors."""
        return self._session.make_callable(dict(tensors), [self._examples])

    def metric_sums(self, serialized: npt.NDArray[Any]) -> list[Any]:
        """Returns the number of examples and the variables of the metrics; both add up over batches."""
        with self._lock:
            self._reset()
            self._update(serialized)
            return [np.array(len(serialized)), *self._read()[:-1]]

    def metric_values(self, sums: Sequence[Any]) -> dict[str, Any]:
        with self._lock:
            self._assign(*sums[1:])
            return dict(self._values())


_graphs: "weakref.WeakValueDictionary[tuple[str, int], EvalGraph]" = weakref.WeakValueDictionary()
_loading = threading.Lock()


def load_graph(path: str) -> EvalGraph:
    """Returns an evaluation model, which a process loads only once while it is in use."""
    with _loading:
        # A model that was written to the same path later is a different model.
        key = path, tf.io.gfile.stat(path).mtime_nsec
        graph = _graphs.get(key)
        if graph is None:
            graph = _graphs[key] = EvalGraph(path)
        return graph


class EvalModel:
    """An evaluation SavedModel, reduced to labels and predictions.

    The labels are those of training, even if `preprocessing_fn` derives them: the model contains all
    steps from the raw example. The default prediction is `logistic`, `probabilities` or `predictions`,
    or else the only prediction of the model.
    """

    def __init__(
        self, path: str, prediction_key: str = "", label_key: str = "", weight_key: str = ""
    ) -> None:
        self._path = path
        self._graph = load_graph(path)
        self._label = _find_label(self._graph.labels, label_key, path)
        self.prediction = _find_prediction(self._graph.predictions, prediction_key, path)
        labels = {"labels": self._graph.labels[self._label]}
        outputs = {**labels, "predictions": self._graph.predictions[self.prediction]}
        # Keyed like the prediction itself when the model has several heads: "head/all_classes".
        head, separator, _ = self.prediction.rpartition("/")
        classes = f"{head}{separator}{_ALL_CLASSES}"
        self._has_class_names = classes in self._graph.predictions
        if self._has_class_names:
            outputs["classes"] = self._graph.predictions[classes]
        # Fetching only these tensors skips the metrics, which would take more time than the rest.
        self._function = self._graph.fetch(outputs)
        self._labels_function = self._graph.fetch(labels)
        self._weights_function = None
        if weight_key:
            self._weights_function = self._graph.fetch({"weights": self._graph.features[weight_key]})
        self._classes: npt.NDArray[Any] | None = None

    def __call__(self, serialized: npt.NDArray[Any]) -> Evaluated:
        """Returns labels and predictions of serialized tf.Examples `[batch_size]`."""
        outputs = self._run(serialized)
        return Evaluated(self._numbers(outputs["labels"]), _squeeze(outputs["predictions"]))

    def predictions(self, serialized: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the predictions alone; the model may not know the labels."""
        return _squeeze(self._run(serialized)["predictions"])

    def labels(self, serialized: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the labels alone, which is cheaper than predicting."""
        self.classes(serialized[:1])
        return self._numbers(self._labels_function(serialized)["labels"])

    def weights(self, serialized: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        """Returns the weights `[batch_size]`; None without `weight_key`, a feature of the model."""
        if self._weights_function is None:
            return None
        return np.asarray(self._weights_function(serialized)["weights"], np.float64).reshape(len(serialized))

    def classes(self, serialized: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """Returns the names of the classes in their order; None if the model does not name them."""
        if self._classes is None and self._has_class_names:
            self._run(serialized)
        return self._classes

    def _run(self, serialized: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        outputs: dict[str, npt.NDArray[Any]] = self._function(serialized)
        if len(outputs["predictions"]) != len(serialized):
            raise ValueError(
                f"The evaluation model {self._path} must return one row for each example. Received: "
                f"{len(outputs['predictions'])} rows for {len(serialized)} examples"
            )
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


_get_tensor = tf1.without_warning(tf1.saved_model.utils.get_tensor_from_tensor_info)


def _tensors(graph: Any, infos: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Returns the tensors of a group of a signature, by their names without that of the group."""
    tensors = {}
    for name, info in infos.items():
        # tf.estimator left a name that begins with the group's as it is.
        if name.startswith(group):
            tensor = _get_tensor(info, graph)
            is_sparse = isinstance(tensor, tf.SparseTensor)
            tensors[name.removeprefix(f"{group}/")] = tf.sparse.to_dense(tensor) if is_sparse else tensor
    return tensors


def _find_label(labels: Mapping[str, Any], label_key: str, path: str) -> str:
    if _LABELS in labels:
        return _LABELS  # the only label, so label_key does not matter
    if label_key in labels:
        return label_key
    if len(labels) == 1 and not label_key:
        return next(iter(labels))
    raise SettingError(
        f"Which label of {path} to evaluate? Set label_key of the ModelSpec to one of: "
        f"{', '.join(nearest_first(label_key, labels)) or 'none; the model has no labels'}. "
        f"Received: label_key={label_key!r}"
    )


def _find_prediction(predictions: Mapping[str, Any], prediction_key: str, path: str) -> str:
    for key in (prediction_key,) if prediction_key else _DEFAULT_PREDICTION_KEYS:
        if key in predictions:
            return key
    if len(predictions) == 1 and not prediction_key:
        return next(iter(predictions))
    raise ValueError(
        f"Which prediction of {path} to evaluate? Set prediction_key of the ModelSpec to one of: "
        f"{', '.join(nearest_first(prediction_key, predictions)) or 'none; the model has no predictions'}. "
        f"Received: prediction_key={prediction_key!r}"
    )


def _squeeze(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns `[batch_size, 1]` as `[batch_size]`, any other shape unchanged."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
