"""SequentialHeadWrapper: a label for each time step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads.assertions import assertion
from estimator_core.heads.base import Head
from estimator_core.heads.multi_head import MultiHead
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.export_outputs import ExportOutput
from estimator_core.spec.mode_keys import ModeKeys


class SequentialHeadWrapper(Head):
    """Applies another head to sequences: each time step counts as an example, padding does not.

    Labels and weights are `[batch_size, max_length]` or `[batch_size, max_length, any]`, dense with
    padding, or sparse with one value (or row of values) for each time step.

    Example:
        >>> head = SequentialHeadWrapper(BinaryClassHead(weight_column="weight"),
        ...                              sequence_length_mask="mask", feature_columns="weight")
        >>> head.logits_dimension
        1

    Args:
        static_head: Head for single time steps; any but `MultiHead`.
        sequence_length_mask: Feature name of the mask, bool `[batch_size, max_length]`, False after the
            end of an example. RNN estimators add the feature if it is missing.
        feature_columns: Name or names of the features that `static_head` uses, such as its
            `weight_column`; None means none.

    Raises:
        TypeError: A name is not a string.
        ValueError: `static_head` is a `MultiHead`.

    Source: `SequentialHeadWrapper` of tf.estimator 2.15, which `RNNClassifier` uses to return sequences.
    """

    def __init__(
        self,
        static_head: Head,
        sequence_length_mask: str = "sequence_length_mask",
        feature_columns: str | Iterable[str] | None = None,
    ):
        if not isinstance(sequence_length_mask, str):
            raise TypeError(
                "sequence_length_mask must be a string, the name of a feature. "
                f"Received: sequence_length_mask={sequence_length_mask!r}"
            )
        names = feature_columns or []
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
            raise TypeError(
                "feature_columns must be a string or a list of strings, names of features: a weight "
                "column of sequences is given by its name. "
                f"Received: feature_columns={feature_columns!r}"
            )
        if isinstance(static_head, MultiHead):
            raise ValueError("`MultiHead` is not supported with `SequentialHeadWrapper`.")
        self._static_head = static_head
        self._sequence_length_mask = sequence_length_mask
        self._feature_columns = list(names)

    @property
    def static_head(self) -> Head:
        """The head for single time steps."""
        return self._static_head

    @property
    def input_sequence_mask_key(self) -> str:
        """Feature name of the mask."""
        return self._sequence_length_mask

    @property
    def name(self) -> str | None:
        """Name of the static head with the suffix "_sequential", or None."""
        return f"{self._static_head.name}_sequential" if self._static_head.name else None

    @property
    def logits_dimension(self) -> int:
        """Logits dimension of the static head."""
        return self._static_head.logits_dimension

    @property
    def loss_reduction(self) -> str:
        """Reduction of the static head, one of `LossReduction`; means are over all time steps."""
        return self._static_head.loss_reduction

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """Returns the scalar training loss of all time steps; see `Head.loss`.

        Args:
            labels: `[batch_size, max_length, ...]`.
            logits: `[batch_size, max_length, logits_dimension]`.
            features: Dict of feature name to tensor, with the mask.
            mode: One of `ModeKeys`.
            regularization_losses: Scalars to add to the loss.
        """
        labels, logits, features = self._flatten(labels, logits, features)
        return self._static_head.loss(
            labels=labels,
            logits=logits,
            features=features,
            mode=mode,
            regularization_losses=regularization_losses,
        )

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the static head's predictions for all time steps, padding included."""
        return self._static_head.predictions(logits, keys)

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics of the static head by key."""
        return self._static_head.metrics(regularization_losses=regularization_losses)

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Adds the time steps of a batch to the metrics and returns them; see `Head.update_metrics`."""
        labels, logits, features = self._flatten(labels, logits, features)
        return self._static_head.update_metrics(
            eval_metrics,
            features=features,
            logits=logits,
            labels=labels,
            mode=mode,
            regularization_losses=regularization_losses,
        )

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the signatures of the static head."""
        return self._static_head.export_outputs(predictions)

    def _own_spec(
        self, features: Any, mode: str, logits: Any, labels: Any = None, *args: Any, **others: Any
    ) -> EstimatorSpec:
        if mode == ModeKeys.PREDICT:
            spec = self._static_head.create_estimator_spec(features, mode, logits)
            mask = {self._sequence_length_mask: self._mask(features)}
            return spec._replace(predictions={**spec.predictions, **mask})
        labels, logits, features = self._flatten(labels, logits, features)
        return self._static_head.create_estimator_spec(features, mode, logits, labels, *args, **others)

    def _mask(self, features: Any) -> tf.Tensor:
        if not isinstance(features, Mapping) or self._sequence_length_mask not in features:
            names = sorted(map(str, features)) if isinstance(features, Mapping) else features
            raise ValueError(
                f"The sequence_length_mask {self._sequence_length_mask!r} is not in the features "
                f"dictionary. Received: {names}"
            )
        mask = tf.convert_to_tensor(features[self._sequence_length_mask])
        if mask.shape.rank != 2:
            raise ValueError(
                "The sequence_length_mask must have two dimensions, [batch_size, max_length]. "
                f"Received: {mask}"
            )
        return mask

    def _flatten(
        self, labels: Any, logits: Any, features: Any
    ) -> tuple[tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
        """Returns labels, logits and features of the time steps without padding."""
        mask = self._mask(features)
        missing = [name for name in self._feature_columns if name not in features]
        if missing:
            raise ValueError(
                f"feature_columns {missing} are not in the features dictionary. "
                f"Received: {sorted(map(str, features))}"
            )
        if labels is None:
            raise ValueError(
                "You must provide a labels Tensor, but labels is None. Check that input_fn returns "
                "(features, labels) and that the data holds the label."
            )
        with tf.name_scope("flatten"):
            return (
                _flat("labels", labels, mask),
                _flat("logits", logits, mask),
                {name: _flat(name, features[name], mask) for name in self._feature_columns},
            )


def _flat(what: str, value: Any, mask: tf.Tensor) -> tf.Tensor:
    """Returns the values without padding, `[number of steps, ...]`, of rank 2 at least.

    `value`: `Tensor`, `SparseTensor` or `RaggedTensor`, `[batch_size, max_length, ...]`.
    `mask`: mask of the time steps, bool `[batch_size, max_length]`.
    """
    if isinstance(value, tf.RaggedTensor):
        value = value.to_sparse()
    is_sparse = isinstance(value, tf.SparseTensor)
    if not is_sparse:
        value = tf.convert_to_tensor(value)
    rank = value.shape.rank
    if rank is None or rank < 2:
        raise ValueError(
            f"{what} must have at least 2 dimensions, [batch_size, max_length]. Received: {value}"
        )
    if is_sparse:
        # Sparse values have none for padding: in order, they are the values of the steps.
        flat = tf.sparse.reorder(value).values
        if rank > 2:
            flat = tf.reshape(flat, tf.concat([[-1], value.dense_shape[2:]], axis=0))
        actual, wanted = tf.shape(flat)[:1], tf.math.count_nonzero([mask], dtype=tf.int32)
    else:
        actual, wanted = tf.shape(value)[:2], tf.shape(mask)
    control_inputs = assertion(
        tf.reduce_all(tf.equal(actual, wanted)),
        f"{what} must have a value for each time step of the sequence mask. Received, of "
        f"{what} and of the mask:",
        actual,
        wanted,
    )
    with tf.control_dependencies(control_inputs):
        flat = tf.identity(flat) if is_sparse else tf.boolean_mask(tf.identity(value), mask)
    return tf.expand_dims(flat, -1) if rank == 2 else flat
