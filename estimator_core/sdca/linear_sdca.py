"""LinearSDCA: the settings of stochastic dual coordinate ascent."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class LinearSDCA:
    """Trains a linear model by stochastic dual coordinate ascent; an `optimizer` of linear Estimators.

    It minimizes the mean loss plus regularization. It identifies examples by an id and needs
    no learning rate: it stores the contribution of each example, and changes it when the
    example comes again. It trains binary, logistic, Poisson and least-squares models with one logit,
    whose columns are categorical or have one dimension, and with the sparse combiner "sum".

    Example:
        >>> sdca = LinearSDCA(example_id_column="example_id", symmetric_l2_regularization=10.0)
        >>> classifier = LinearClassifier(feature_columns=columns, optimizer=sdca)

    Args:
        example_id_column: Name of the feature, strings `[batch_size]`, that identifies examples.
        num_loss_partitions: Number of workers that train at the same time. If it is too small, training
            can diverge.
        num_table_shards: Number of tables for the state of the examples; None means 1.
        symmetric_l1_regularization: Weight of the sum of absolute values of the variables.
        symmetric_l2_regularization: Weight of half the sum of their squares, above 0.
        adaptive: Samples examples that the model still gets wrong more often if true.

    Raises:
        ValueError: A number is out of range.

    Source: `tf.estimator.experimental.LinearSDCA`; Shalev-Shwartz and Zhang, "Proximal stochastic dual
    coordinate ascent", 2012. There, logistic and Poisson regressions are fitted as least squares,
    labels must be numbers, and a weight column must be a name.
    """

    example_id_column: str
    num_loss_partitions: int = 1
    num_table_shards: int | None = None
    symmetric_l1_regularization: float = 0.0
    symmetric_l2_regularization: float = 1.0
    adaptive: bool = False

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if self.num_loss_partitions < 1:
            raise ValueError(f"num_loss_partitions must be at least 1. Received: {self.num_loss_partitions}")
        if self.num_table_shards is not None and self.num_table_shards < 1:
            raise ValueError(f"num_table_shards must be at least 1. Received: {self.num_table_shards}")
        if self.symmetric_l1_regularization < 0.0:
            raise ValueError(
                "symmetric_l1_regularization should be non-negative. "
                f"Received: {self.symmetric_l1_regularization}"
            )
        if self.symmetric_l2_regularization <= 0.0:
            raise ValueError(
                "symmetric_l2_regularization should be positive. "
                f"Received: {self.symmetric_l2_regularization}"
            )
