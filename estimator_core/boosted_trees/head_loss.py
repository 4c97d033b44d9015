"""The loss of a head over all training data, with its gradients and Hessians, in the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.mode_keys import ModeKeys

_MIN_HESSIAN = 1e-16
_IN_THIS_THREAD = tf1.RunOptions(inter_op_thread_pool=-1)  # waiting for another thread takes longer


class HeadLoss:
    """The loss of a head as a graph that is fed with data and logits.

    It keeps only the features that the loss reads, such as example weights, which it finds in its graph.

    `batch`: Tensors of a batch to keep, each `[batch_size, ...]`: labels and the features that the loss
    reads.
    """

    def __init__(self, head: Head, features: Mapping[str, Any], labels: Any):
        if labels is None:
            raise ValueError("Boosted trees need labels to train on: input_fn gave none.")
        dimension = head.logits_dimension
        with tf.name_scope("training_loss"):
            batch_labels = _labels_to_keep(head, features, labels)
            dense = {
                name: tf.convert_to_tensor(value)
                for name, value in features.items()
                if not isinstance(value, (tf.SparseTensor, tf.RaggedTensor))
            }
            self._labels = tf.nest.map_structure(_placeholder, batch_labels)
            whole_features = {name: _placeholder(value) for name, value in dense.items()}
            self._logits = tf1.placeholder(tf.float32, [None, dimension])
            with _without_summaries():
                self._loss = _loss(head, self._labels, self._logits, whole_features)
            used = _ancestors(self._loss)
            self._features = {name: tensor for name, tensor in whole_features.items() if tensor.op in used}
            self.batch = (batch_labels, {name: dense[name] for name in self._features})
            self._is_mean = head.loss_reduction in LossReduction.MEANS
            self._gradients = _gradients(self._loss, self._logits)

    def value(self, session: Any, data: Any, logits: Any) -> Any:
        """Returns the loss, a float32 scalar."""
        return session.run(self._loss, self._feed(data, logits), options=_IN_THIS_THREAD)

    def gradients(self, session: Any, data: Any, logits: Any) -> tuple[Any, Any, Any]:
        """Returns (loss, gradients, Hessians).

        Gradients and Hessians, `[rows, logits_dimension]`, belong to the sum over the examples.
        A piecewise linear loss, whose second derivative is 0, gets Hessians of 1; where a loss is
        concave, they are almost 0.
        """
        fetches = (self._loss, *self._gradients)
        loss, gradients, hessians = session.run(fetches, self._feed(data, logits))
        scale = np.float32(len(logits) if self._is_mean else 1)
        is_straight = ~hessians.any(axis=0)
        hessians = np.where(is_straight, np.float32(1), hessians * scale)
        return loss, gradients * scale, np.maximum(hessians, _MIN_HESSIAN)

    def _feed(self, data: Any, logits: Any) -> dict[Any, Any]:
        labels, features = data
        pairs = zip(
            tf.nest.flatten((self._labels, self._features)), tf.nest.flatten((labels, features)), strict=True
        )
        feed: dict[Any, Any] = {self._logits: logits}
        feed.update(pairs)
        return feed


def _labels_to_keep(head: Head, features: Mapping[str, Any], labels: Any) -> Any:
    """Returns labels as dense tensors: numbers, if the head converts them to numbers."""
    if isinstance(head, WeightedHead):
        batch_size = tf.shape(next(iter(features.values())))[0]
        return head.processed_labels(labels, tf.zeros([batch_size, head.logits_dimension]))
    for label in tf.nest.flatten(labels):
        if isinstance(label, (tf.SparseTensor, tf.RaggedTensor)):
            raise ValueError(f"Labels must be dense for this head; use tf.sparse.to_dense. Received: {label}")
    return tf.nest.map_structure(tf.convert_to_tensor, labels)


def _loss(head: Head, labels: Any, logits: tf.Tensor, features: Any) -> tf.Tensor:
    if isinstance(head, WeightedHead) and type(head).loss is WeightedHead.loss:
        return head.loss_of_processed(labels, logits, features)
    return head.loss(labels, logits, features=features, mode=ModeKeys.TRAIN)


@contextlib.contextmanager
def _without_summaries() -> Iterator[None]:
    """Opens a context that discards new summaries: training steps don't feed their inputs."""
    summaries = tf1.get_collection_ref(tf1.GraphKeys.SUMMARIES)
    earlier_summaries = [*summaries]
    yield
    summaries[:] = earlier_summaries


def _placeholder(tensor: tf.Tensor) -> tf.Tensor:
    shape = tensor.shape
    if shape.rank is not None:  # any number of rows
        shape = tf.TensorShape([None]).concatenate(shape[1:])
    return tf1.placeholder(tensor.dtype, shape)


def _ancestors(tensor: tf.Tensor) -> set[tf.Operation]:
    """Returns the operations that compute a tensor."""
    ancestors = {tensor.op}
    pending = [tensor.op]
    while pending:
        operation = pending.pop()
        for source in [*(value.op for value in operation.inputs), *operation.control_inputs]:
            if source not in ancestors:
                ancestors.add(source)
                pending.append(source)
    return ancestors


def _gradients(loss: tf.Tensor, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first and second derivatives by each logit."""
    (gradients,) = tf.gradients(loss, logits)
    hessians = []
    for index in range(logits.shape[1]):
        (second,) = tf.gradients(
            gradients[:, index], logits, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        hessians.append(second[:, index])
    return gradients, tf.stack(hessians, axis=1)
