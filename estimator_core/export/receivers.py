"""Receivers: the placeholders of an exported model, and the features made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.export.packs import Packs, parse_packed

_SINGLE_FEATURE = "feature"
_SINGLE_RECEIVER = "input"
_SINGLE_LABEL = "label"


def _tensors_by_name(tensors: Any, single_name: str, what: str, kinds_of_names: Any = str) -> dict[str, Any]:
    if not isinstance(tensors, Mapping):
        tensors = {single_name: tensors}
    for name, tensor in tensors.items():
        if not isinstance(name, kinds_of_names):
            raise ValueError(f"{what} keys must be strings. Received: {name!r}")
        is_tensor = tf.is_tensor(tensor) or isinstance(tensor, (tf.SparseTensor, tf.RaggedTensor))
        if not is_tensor or isinstance(tensor, tf.Variable):
            raise ValueError(f"{what} {name!r} must be a Tensor or SparseTensor. Received: {tensor!r}")
    return dict(tensors)


def _checked_alternatives(alternatives: Any) -> dict[str, dict[str, Any]] | None:
    if alternatives is None:
        return None
    if not isinstance(alternatives, Mapping):
        raise ValueError(f"receiver_tensors_alternatives must be a dict. Received: {alternatives!r}")
    return {
        name: _tensors_by_name(tensors, _SINGLE_RECEIVER, "receiver_tensors_alternatives")
        for name, tensors in alternatives.items()
    }


class _ServingFields(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: dict[str, dict[str, Any]] | None


class ServingInputReceiver(_ServingFields):
    """The placeholders that a client feeds, and the features computed from them.

    Args:
        features: Dict of feature name to `Tensor` or `SparseTensor`, for `model_fn`. A
            single `Tensor` becomes {"feature": tensor}.
        receiver_tensors: Dict of input name to the `Tensor` that is fed; a single one is "input".
        receiver_tensors_alternatives: Further groups of tensors that may be fed instead, by name.

    Raises:
        ValueError: `features` or `receiver_tensors` is None or holds anything but tensors.

    Source: `tf.estimator.export.ServingInputReceiver`.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        """Returns the checked ServingInputReceiver."""
        if features is None or receiver_tensors is None:
            raise ValueError("features and receiver_tensors must be defined; one of them is None.")
        return super().__new__(
            cls,
            _tensors_by_name(features, _SINGLE_FEATURE, "feature", (str, int)),
            _tensors_by_name(receiver_tensors, _SINGLE_RECEIVER, "receiver_tensors"),
            _checked_alternatives(receiver_tensors_alternatives),
        )

    def with_features(self, features: Any) -> ServingInputReceiver:
        """Returns a receiver of the same tensors, with features that were computed from its own."""
        return ServingInputReceiver(features, self.receiver_tensors, self.receiver_tensors_alternatives)


class TensorServingInputReceiver(_ServingFields):
    """A `ServingInputReceiver` whose `model_fn` takes one bare tensor as its features.

    Args:
        features: `Tensor` or `SparseTensor`.
        receiver_tensors: Dict of input name to the `Tensor` that is fed; a single one is "input".
        receiver_tensors_alternatives: Further groups of tensors that may be fed instead, by name.

    Raises:
        ValueError: `features` is a dict, None, or no tensor.

    Source: `tf.estimator.export.TensorServingInputReceiver`.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        """Returns the checked TensorServingInputReceiver."""
        if features is None or isinstance(features, Mapping):
            raise ValueError(
                "features of a TensorServingInputReceiver must be one Tensor; use "
                f"ServingInputReceiver for a dict. Received: features={features!r}"
            )
        receiver = ServingInputReceiver(features, receiver_tensors, receiver_tensors_alternatives)
        return super().__new__(
            cls, features, receiver.receiver_tensors, receiver.receiver_tensors_alternatives
        )


class _EvalFields(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    labels: Any


class EvalInputReceiver(_EvalFields):
    """The placeholders of an exported evaluation graph, with the features and labels made of them.

    TFX's classic `eval_input_receiver_fn` returns it.

    Args:
        features: Dict of feature name to `Tensor` or `SparseTensor`; a single one is "feature".
        receiver_tensors: Dict of input name to the `Tensor` that is fed; a single one is "input".
        labels: `Tensor`, or dict of name to `Tensor`.

    Raises:
        ValueError: One of them is None or holds anything but tensors.

    Source: `tfma.export.EvalInputReceiver`, which TFMA dropped with tf.estimator.
    """

    __slots__ = ()

    def __new__(cls, features: Any, receiver_tensors: Any, labels: Any) -> EvalInputReceiver:
        """Returns the checked EvalInputReceiver."""
        if features is None or receiver_tensors is None or labels is None:
            raise ValueError("features, receiver_tensors and labels must be defined; one is None.")
        _tensors_by_name(labels, _SINGLE_LABEL, "label", (str, int))
        return super().__new__(
            cls,
            _tensors_by_name(features, _SINGLE_FEATURE, "feature", (str, int)),
            _tensors_by_name(receiver_tensors, _SINGLE_RECEIVER, "receiver_tensors"),
            labels,
        )


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None, packs: Packs | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a `serving_input_receiver_fn` that parses serialized tf.Examples.

    The only input is a string `Tensor` `[batch_size]` named "examples".

    Args:
        feature_spec: Dict of feature name to `tf.io.FixedLenFeature`, `VarLenFeature` and so on.
        default_batch_size: Fixed batch size; None accepts any.
        packs: Columns that are features together, see `parse_packed`; tf.estimator has no such argument.

    Source: `tf.estimator.export.build_parsing_serving_input_receiver_fn`.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        serialized = tf1.placeholder(dtype=tf.string, shape=[default_batch_size], name="input_example_tensor")
        features = parse_packed(serialized, feature_spec, packs or {})
        return ServingInputReceiver(features, {"examples": serialized})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a `serving_input_receiver_fn` that takes raw feature tensors.

    Args:
        features: Dict of feature name to a `Tensor` (or `tf.TensorSpec`, or array) with the dtype
            and the shape `[batch_size, ...]` of that feature. Values are not used.
        default_batch_size: Fixed batch size; None accepts any.

    Raises:
        ValueError: A feature has no batch dimension.

    Source: `tf.estimator.export.build_raw_serving_input_receiver_fn`.
    """
    specs = {}
    for name, value in features.items():
        value = value if isinstance(value, tf.TensorSpec) or tf.is_tensor(value) else tf.constant(value)
        if value.shape.rank == 0:
            raise ValueError(
                f"Feature {name!r} needs a batch dimension: its shape must be [batch_size, ...]. "
                f"Received: shape={value.shape}"
            )
        shape = value.shape  # unknown stays unknown
        if shape.rank is not None:
            shape = [default_batch_size, *shape.as_list()[1:]]
        specs[name] = (value.dtype, shape)

    def serving_input_receiver_fn() -> ServingInputReceiver:
        placeholders = {
            name: tf1.placeholder(dtype=dtype, shape=shape, name=op_name(name))
            for name, (dtype, shape) in specs.items()
        }
        return ServingInputReceiver(placeholders, placeholders)

    return serving_input_receiver_fn


def op_name(name: str) -> str:
    """Returns `name` as a valid name of an operation."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-/") else "_" for c in name)
    return kept if kept[:1].isalnum() else f"input_{kept}"
