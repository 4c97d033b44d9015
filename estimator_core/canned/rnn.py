"""Recurrent neural networks as Estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from estimator_core import tf1
from estimator_core.estimator import Estimator
from estimator_core.heads import Head
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.sequential import SequentialHeadWrapper
from estimator_core.logits.rnn import USE_DEFAULT, rnn_logit_fn_builder
from estimator_core.optimizers.clipped import ClippedOptimizer
from estimator_core.optimizers.minimize import get_optimizer
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys

_LEARNING_RATE = 0.05
_CLIPNORM = 5.0


class RNNEstimator(Estimator):
    """A recurrent neural network with a head of your choice.

    Example:
        >>> fc = tf.feature_column
        >>> words = fc.sequence_categorical_column_with_hash_bucket("words", 1000)
        >>> estimator = RNNEstimator(
        ...     RegressionHead(), [fc.embedding_column(words, 16)], units=[32, 16], cell_type="lstm"
        ... )

    Args:
        head: Head that turns logits into predictions, loss and metrics; with `return_sequences` a
            `SequentialHeadWrapper`.
        sequence_feature_columns: `sequence_numeric_column`s, and embedding or indicator columns over
            `sequence_categorical_column_*`.
        context_feature_columns: Dense columns, whose values are appended to each time step; None has none.
        units: Size of each recurrent layer, from the input on, or of the only one.
        cell_type: "simple_rnn" (the default), "lstm", "gru", or a class of Keras cells.
        rnn_cell_fn: Instead of `units` and `cell_type`, a function that returns a Keras cell (of
            Keras 3 or tf_keras), `StackedRNNCells`, or a list of cells.
        return_sequences: Predicts for each time step if true, else once after the last one.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        optimizer: "Adagrad" (the default), "Adam", "Ftrl", "RMSProp", "SGD", each with the learning
            rate 0.05 and the gradient of each variable clipped to the norm 5; or a Keras optimizer, a
            `tf.compat.v1.train.Optimizer`, or a function that returns one, used as it is.
        config: `RunConfig`; None means a default one.

    Raises:
        ValueError: Arguments are invalid or contradict each other.

    Source: `tf.estimator.experimental.RNNEstimator`.
    """

    def __init__(
        self,
        head: Head,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        units: int | Iterable[int] | None = None,
        cell_type: Any = USE_DEFAULT,
        rnn_cell_fn: Callable[[], Any] | None = None,
        return_sequences: bool = False,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        config: Any = None,
    ):
        if return_sequences and not isinstance(head, SequentialHeadWrapper):
            raise ValueError(
                "With return_sequences=True the head must be a `SequentialHeadWrapper`, around the "
                f"head for single time steps. Received: head={head!r}"
            )
        logit_fn = rnn_logit_fn_builder(
            head.logits_dimension,
            sequence_feature_columns,
            context_feature_columns,
            rnn_units=units,
            cell_type=cell_type,
            rnn_cell_fn=rnn_cell_fn,
            return_sequences=return_sequences,
        )

        def model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
            del config  # see `compose`
            logits, sequence_mask = logit_fn(features, mode)
            if isinstance(head, SequentialHeadWrapper):
                features = {head.input_sequence_mask_key: sequence_mask, **features}
            return head.create_estimator_spec(
                features,
                mode,
                logits,
                labels=labels,
                optimizer=_clipped(optimizer) if mode == ModeKeys.TRAIN else None,
            )

        super().__init__(model_fn, model_dir=model_dir, config=config)


def _clipped(optimizer: Any) -> Any:
    """Returns the optimizer; if it is given by name, it clips gradients."""
    if not isinstance(optimizer, str):
        return optimizer
    global_step = tf1.train.get_or_create_global_step()
    return ClippedOptimizer(get_optimizer(optimizer, _LEARNING_RATE, global_step), _CLIPNORM)


class RNNClassifier(RNNEstimator):
    """A recurrent neural network that classifies sequences, or each of their time steps.

    Example:
        >>> fc = tf.feature_column
        >>> words = fc.sequence_categorical_column_with_hash_bucket("words", 1000)
        >>> classifier = RNNClassifier([fc.embedding_column(words, 16)], units=[32], cell_type="gru")
        >>> classifier.train(input_fn, steps=1000)  # doctest: +SKIP

    Args: same as `RNNEstimator`, except:
        return_sequences: Classifies each time step if true. Labels then have a class for each step, and
            `weight_column` is None or a string.
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        sequence_mask: Feature name of a mask for `return_sequences`, bool
            `[batch_size, max_length]`, of the time steps that count; without that feature, the mask
            follows from the lengths of the sequences. The predictions hold it under the same name.
        config: `RunConfig`; None means a default one.

    Raises:
        ValueError: Arguments are invalid or contradict each other.

    Source: `tf.estimator.experimental.RNNClassifier`.
    """

    def __init__(
        self,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        units: int | Iterable[int] | None = None,
        cell_type: Any = USE_DEFAULT,
        rnn_cell_fn: Callable[[], Any] | None = None,
        return_sequences: bool = False,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        sequence_mask: str = "sequence_mask",
        config: Any = None,
    ):
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        if return_sequences:
            head = SequentialHeadWrapper(head, sequence_mask, feature_columns=weight_column)
        super().__init__(
            head,
            sequence_feature_columns,
            context_feature_columns=context_feature_columns,
            units=units,
            cell_type=cell_type,
            rnn_cell_fn=rnn_cell_fn,
            return_sequences=return_sequences,
            model_dir=model_dir,
            optimizer=optimizer,
            config=config,
        )
