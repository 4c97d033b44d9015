"""Receivers of features together with labels, to export a model for training or evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from estimator_core.export.receivers import build_raw_serving_input_receiver_fn

_SINGLE_FEATURE = "input"
_SINGLE_LABEL = "label"


class SupervisedInputReceiver(NamedTuple):
    """The placeholders that a client feeds, and the features and labels made of them.

    Source: the result of `build_raw_supervised_input_receiver_fn`'s functions in tf.estimator.
    """

    features: Any  # Features for `model_fn`: dict of name to `Tensor`, or one `Tensor`
    labels: Any  # Labels for `model_fn`: dict of name to `Tensor`, or one `Tensor`
    receiver_tensors: dict[str, Any]  # Dict of input name to the `Tensor` that is fed


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """Returns an `input_receiver_fn` that takes raw tensors of features and labels.

    For `Estimator.experimental_export_all_saved_models`, in the modes that need labels.

    Args:
        features: Dict of feature name to a `Tensor` (or `tf.TensorSpec`, or array) with the dtype and
            the shape `[batch_size, ...]` of that feature, or one such value, which is fed as "input".
            Values are not used.
        labels: Labels, in the same form; one value is fed as "label".
        default_batch_size: Fixed batch size; None accepts any.

    Raises:
        ValueError: A feature and a label have the same name, or one has no batch dimension.

    Source: `tf.estimator.experimental.build_raw_supervised_input_receiver_fn`.
    """
    features_by_name = _by_name(features, _SINGLE_FEATURE)
    labels_by_name = _by_name(labels, _SINGLE_LABEL)
    common = set(features_by_name) & set(labels_by_name)
    if common:
        raise ValueError(f"Features and labels must have distinct keys. Received: in both {sorted(common)}")
    placeholders_fn = build_raw_serving_input_receiver_fn(
        {**features_by_name, **labels_by_name}, default_batch_size
    )

    def input_receiver_fn() -> SupervisedInputReceiver:
        placeholders = placeholders_fn().receiver_tensors
        return SupervisedInputReceiver(
            features=_like(features, {name: placeholders[name] for name in features_by_name}),
            labels=_like(labels, {name: placeholders[name] for name in labels_by_name}),
            receiver_tensors=placeholders,
        )

    return input_receiver_fn


def _by_name(values: Any, single_name: str) -> dict[str, Any]:
    return dict(values) if isinstance(values, Mapping) else {single_name: values}


def _like(values: Any, placeholders: dict[str, Any]) -> Any:
    """Returns a dict if `values` is one, else the only placeholder."""
    return placeholders if isinstance(values, Mapping) else next(iter(placeholders.values()))
