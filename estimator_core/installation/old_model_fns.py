"""The model_fns of tensorflow_estimator's canned models, which programs call with heads of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import compose
from estimator_core.canned.dnn import Network
from estimator_core.canned.linear import LinearModel, linear_model_fn
from estimator_core.experimental import dnn_logit_fn_builder
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.v1 import model_fns as v1_model_fns
from estimator_core.v1.heads import classifier_head


class _WithTpuSpec:
    """A head whose specs are `TPUEstimatorSpec`s."""

    def __init__(self, head: Any):
        if not hasattr(head, "_create_tpu_estimator_spec"):
            raise ValueError(
                "use_tpu=True needs a head that defines _create_tpu_estimator_spec, such as those of "
                f"canned.head; or use estimator_core.tpu.to_tpu_estimator. Received: head={head!r}"
            )
        self._head = head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._head, name)

    def create_estimator_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the head's `TPUEstimatorSpec`."""
        return self._head._create_tpu_estimator_spec(*args, **kwargs)  # noqa: SLF001


def _dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Callable[[Any], Any] | str | None,
    dropout: float | None,
    input_layer_partitioner: Callable[..., Any] | None,
    batch_norm: bool = False,
) -> Callable[..., tf.Tensor]:
    """Returns `experimental.dnn_logit_fn_builder`'s result; before TensorFlow 1.10 it took no batch_norm."""
    return dnn_logit_fn_builder(
        units, hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm
    )


def _dnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Sequence[int],
    feature_columns: Any,
    optimizer: Any = "Adagrad",
    activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
    dropout: float | None = None,
    input_layer_partitioner: Callable[..., Any] | None = None,
    config: Any = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    """Returns the spec of TensorFlow 1's `DNNEstimator`; its arguments are the same."""
    network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
    own_head: Any = _WithTpuSpec(head) if use_tpu else head
    model_fn = v1_model_fns.dnn_model_fn(
        own_head, network, optimizer, input_layer_partitioner, config, is_partitioned=not use_tpu
    )
    return model_fn(features, labels, mode)


def dnn_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Sequence[int],
    feature_columns: Any,
    optimizer: Any = "Adagrad",
    activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
    dropout: float | None = None,
    config: Any = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    """Returns the spec of `DNNEstimator`; its arguments are the same."""
    del config
    network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
    head = _WithTpuSpec(head) if use_tpu else head
    return compose(head, [(network.logit_fn(head), optimizer)])(features, labels, mode)


def _linear_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Any,
    optimizer: Any,
    partitioner: Callable[..., Any] | None,
    config: Any,
    sparse_combiner: str = "sum",
) -> Any:
    """Returns the spec of TensorFlow 1's `LinearEstimator`; its arguments are the same."""
    linear = LinearModel(feature_columns, sparse_combiner)
    model_fn = v1_model_fns.linear_model_fn(head, linear, optimizer, partitioner, config)
    return model_fn(features, labels, mode)


def _linear_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Any,
    optimizer: Any,
    config: Any,
    sparse_combiner: str = "sum",
) -> Any:
    """Returns the spec of `LinearEstimator`; its arguments are the same."""
    del config
    model_fn = linear_model_fn(head, feature_columns, optimizer, sparse_combiner)
    return model_fn(features, labels, mode)


def _validate_linear_sdca_optimizer_for_linear_classifier(
    feature_columns: Any, n_classes: int, optimizer: Any, sparse_combiner: str
) -> None:
    """Checks that `LinearSDCA` can train a classifier, if that is its optimizer."""
    head = classifier_head(n_classes, None, None, LossReduction.WEIGHTED_SUM)
    LinearModel(feature_columns, sparse_combiner).training(head, optimizer)
