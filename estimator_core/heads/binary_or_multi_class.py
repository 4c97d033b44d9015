"""The head of a classifier, by its number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core.heads.base import Head
from estimator_core.heads.binary_class import BinaryClassHead
from estimator_core.heads.checks import static_n_classes
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.multi_class import MultiClassHead


def binary_or_multi_class_head(
    n_classes: int = 2,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
    kinds: tuple[type[BinaryClassHead], type[MultiClassHead]] = (BinaryClassHead, MultiClassHead),
) -> Head:
    """Returns a `BinaryClassHead` for two classes, a `MultiClassHead` for more."""
    binary_class_head, multi_class_head = kinds
    n_classes = static_n_classes(n_classes)
    if n_classes == 2:
        return binary_class_head(
            weight_column=weight_column, label_vocabulary=label_vocabulary, loss_reduction=loss_reduction
        )
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be at least 2. Received: n_classes={n_classes}")
    return multi_class_head(
        n_classes,
        weight_column=weight_column,
        label_vocabulary=label_vocabulary,
        loss_reduction=loss_reduction,
    )
