"""Gradient boosted trees, as Estimators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from estimator_core.boosted_trees.columns import checked_columns, column_ranges
from estimator_core.boosted_trees.explanations import Explainer, feature_importances, sigmoid
from estimator_core.boosted_trees.forest_variables import read_checkpoint
from estimator_core.boosted_trees.layer_steps import select_for_trees
from estimator_core.boosted_trees.model_fn import MATRIX, boosted_trees_model_fn
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.estimator import Estimator
from estimator_core.execution.base import Execution
from estimator_core.graphs.program import Program
from estimator_core.heads import BinaryClassHead, Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import selected_predictions
from estimator_core.spec.types import Hook, InputFn

_TREES_IN_A_CALL = 10  # grown between two looks at the clocks of the hooks


class BoostedTreesEstimator(Estimator):
    """Gradient boosted trees with a head of your choice. LightGBM grows them.

    The training data are read once, into memory: `n_batches_per_layer` batches are the data set. A layer
    of a tree then takes as many steps, so that `max_steps` and the intervals of hooks mean what they do
    when each step reads a batch. A tree that training ends in has the layers that it had steps for; a later
    training finishes it.

    Checkpoints hold the forest, and prediction is made of TensorFlow's own operations: LightGBM is needed
    to train and to explain by TreeSHAP, not to evaluate, predict or serve.

    Example:
        >>> age = tf.feature_column.numeric_column("age")
        >>> head = PoissonRegressionHead()
        >>> estimator = BoostedTreesEstimator([age], 1, head)  # doctest: +SKIP

    Args:
        feature_columns: Numeric, bucketized, indicator and categorical columns. A missing number is
            NaN; a categorical column counts as an indicator column of it.
        n_batches_per_layer: Batches that make the data set.
        head: What turns logits into predictions, loss and metrics. An iteration has a tree for each
            logit. Trees are grown by LightGBM's objective for the cross entropy and the squared error, and
            by the derivatives of the loss for any other.
        model_dir: Where checkpoints and summaries go; None means the config's, or a new temporary
            directory.
        weight_column: None, or what the head has: its weights are those of the trees.
        n_trees: Iterations of boosting; training ends when their trees are finished.
        max_depth: Layers of a tree.
        learning_rate: Share of the values of each tree that is added.
        l1_regularization: On the values of leaves, for each example of the data.
        l2_regularization: On their squares, for each example of the data.
        tree_complexity: What a split has to gain for each example of the data, with pruning_mode "pre".
        min_node_weight: The least sum of Hessians of a leaf, for each example of the data.
        config: `RunConfig`; None means a default one. `intra_op_parallelism_threads` of its
            `session_config` is also how many threads grow trees.
        center_bias: Whether the logits start from those of the labels' average.
        pruning_mode: "none", or "pre": no split that gains less than `tree_complexity`.
        quantile_sketch_epsilon: 1 / the number of buckets that the values of a number fall into.
        train_in_memory: Nothing else than True of `n_batches_per_layer=1`: training always is in memory.
        warm_start_from: Checkpoint, SavedModel or `WarmStartSettings` of boosted trees; `n_trees` are
            grown on top of theirs.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.estimator.BoostedTreesEstimator` of TensorFlow 2.10. docs/boosted-trees.md says what
    each argument maps to, and what differs.
    """

    def __init__(
        self,
        feature_columns: Any,
        n_batches_per_layer: int,
        head: Head,
        model_dir: Any = None,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
        warm_start_from: Any = None,
    ):
        _check_weight_column(weight_column, head)
        if train_in_memory and n_batches_per_layer != 1:
            raise ValueError(
                "With train_in_memory, input_fn gives the whole data set as one batch, and "
                "n_batches_per_layer must be 1. "
                f"Received: n_batches_per_layer={n_batches_per_layer!r}"
            )
        self._settings = BoostingSettings(
            n_batches_per_layer,
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        self._head = head
        self._columns = checked_columns(feature_columns)
        model_fn = boosted_trees_model_fn(head, self._columns, self._settings)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)

    def build_program(
        self,
        mode: str,
        input_fn: InputFn,
        starts_from_checkpoint: bool = True,
        execution: Execution | None = None,
    ) -> Program:
        """Returns the graph of one mode; see `Estimator.build_program`.

        Raises:
            ValueError: The config asks for several devices, or tasks of a cluster.
        """
        most_steps = self._settings.steps_per_tree * _TREES_IN_A_CALL
        execution = execution or select_for_trees(self.config, mode, most_steps)
        return super().build_program(mode, input_fn, starts_from_checkpoint, execution)

    def experimental_feature_importances(self, normalize: bool = False) -> dict[str, float]:
        """Returns what the splits by each feature column gain in all, the largest first.

        Args:
            normalize: Whether they are divided by their sum.

        Raises:
            ValueError: There is no checkpoint yet.

        Source: `tf.estimator.BoostedTreesClassifier.experimental_feature_importances`. The gains are
        those of LightGBM, of sums over examples; those of tf.estimator were of means.
        """
        forest = read_checkpoint(self._trained()).forest
        return feature_importances(forest, column_ranges(self._columns), normalize)

    def experimental_predict_with_explanations(
        self,
        input_fn: InputFn,
        predict_keys: Any = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        method: str = "paths",
    ) -> Iterator[dict[str, Any]]:
        """Yields the predictions, and what each feature column adds to them.

        Besides what `predict` yields there are "bias", a number, and "dfc", directional feature
        contributions: a dict of column name to number, the largest first. They add up to the probability of
        class 1 with a `BinaryClassHead`, and to the logit with any other head.

        Args:
            input_fn: As in `predict`.
            predict_keys: As in `predict`.
            hooks: As in `predict`.
            checkpoint_path: As in `predict`.
            method: "paths" gives what a step down a tree changes to the column that the step looked
                at. "tree_shap" is TreeSHAP of the logit: they add up to it, with any head.

        Raises:
            ValueError: There is no checkpoint, or the model has several logits.

        Source: `tf.estimator.BoostedTreesClassifier.experimental_predict_with_explanations`. It has no
        `method`.
        """
        checkpoint_path = checkpoint_path or self._trained()
        link = sigmoid if isinstance(self._head, BinaryClassHead) else np.asarray
        explainer = Explainer(
            read_checkpoint(checkpoint_path), column_ranges(self._columns), method, link
        )
        model_fn = boosted_trees_model_fn(
            self._head, self._columns, self._settings, predicts_matrix=True
        )
        estimator = Estimator(model_fn, self.model_dir, self.config)
        batches = estimator.predict(
            input_fn,
            hooks=hooks,
            checkpoint_path=checkpoint_path,
            yield_single_examples=False,
        )
        for batch in batches:
            explained = explainer.explain(batch.pop(MATRIX))
            wanted = selected_predictions(batch, predict_keys)
            for index, (bias, contributions) in enumerate(explained):
                of_example = {name: value[index] for name, value in wanted.items()}
                yield {**of_example, "bias": bias, "dfc": contributions}

    def _trained(self) -> str:
        """Returns the newest checkpoint.

        Raises:
            ValueError: There is none.
        """
        checkpoint_path = self.latest_checkpoint()
        if not checkpoint_path:
            raise ValueError(
                f"Couldn't find trained model at {self.model_dir}: call train first. Received: no checkpoint"
            )
        return checkpoint_path


def _check_weight_column(weight_column: Any, head: Head) -> None:
    of_head = getattr(head, "weight_column", None)
    names = [getattr(column, "key", column) for column in (weight_column, of_head)]
    if weight_column is not None and names[0] != names[1]:
        raise ValueError(
            "The weights of the trees are those of the head's loss: give the head the weight_column. "
            f"Received: weight_column={weight_column!r}, that of the head={of_head!r}"
        )


class BoostedTreesClassifier(BoostedTreesEstimator):
    """Gradient boosted trees for two classes, or more. LightGBM grows them.

    Example:
        >>> age = tf.feature_column.numeric_column("age")
        >>> classifier = BoostedTreesClassifier([age], n_batches_per_layer=1)
        >>> classifier.train(input_fn, max_steps=100)  # doctest: +SKIP

    Args:
        feature_columns: As in `BoostedTreesEstimator`, like all that is not here.
        n_batches_per_layer: Batches that make the data set.
        model_dir: Where checkpoints and summaries go.
        n_classes: Number of classes, at least 2; each of three or more has trees of its own.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        n_trees: As in `BoostedTreesEstimator`.
        max_depth: As in `BoostedTreesEstimator`.
        learning_rate: As in `BoostedTreesEstimator`.
        l1_regularization: As in `BoostedTreesEstimator`.
        l2_regularization: As in `BoostedTreesEstimator`.
        tree_complexity: As in `BoostedTreesEstimator`.
        min_node_weight: As in `BoostedTreesEstimator`.
        config: As in `BoostedTreesEstimator`.
        center_bias: As in `BoostedTreesEstimator`.
        pruning_mode: As in `BoostedTreesEstimator`.
        quantile_sketch_epsilon: As in `BoostedTreesEstimator`.
        train_in_memory: As in `BoostedTreesEstimator`.
        warm_start_from: As in `BoostedTreesEstimator`.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.estimator.BoostedTreesClassifier` of TensorFlow 2.10.
    """

    def __init__(
        self,
        feature_columns: Any,
        n_batches_per_layer: int,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
        warm_start_from: Any = None,
    ):
        super().__init__(
            feature_columns,
            n_batches_per_layer,
            binary_or_multi_class_head(n_classes, weight_column, label_vocabulary),
            model_dir=model_dir,
            n_trees=n_trees,
            max_depth=max_depth,
            learning_rate=learning_rate,
            l1_regularization=l1_regularization,
            l2_regularization=l2_regularization,
            tree_complexity=tree_complexity,
            min_node_weight=min_node_weight,
            config=config,
            center_bias=center_bias,
            pruning_mode=pruning_mode,
            quantile_sketch_epsilon=quantile_sketch_epsilon,
            train_in_memory=train_in_memory,
            warm_start_from=warm_start_from,
        )


class BoostedTreesRegressor(BoostedTreesEstimator):
    """Gradient boosted trees for numbers. LightGBM grows them.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = BoostedTreesRegressor([size], n_batches_per_layer=1)
        >>> regressor.train(input_fn, max_steps=100)  # doctest: +SKIP

    Args:
        feature_columns: As in `BoostedTreesEstimator`, like all that is not here.
        n_batches_per_layer: Batches that make the data set.
        model_dir: Where checkpoints and summaries go.
        label_dimension: How many numbers a label has; each has trees of its own.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        n_trees: As in `BoostedTreesEstimator`.
        max_depth: As in `BoostedTreesEstimator`.
        learning_rate: As in `BoostedTreesEstimator`.
        l1_regularization: As in `BoostedTreesEstimator`.
        l2_regularization: As in `BoostedTreesEstimator`.
        tree_complexity: As in `BoostedTreesEstimator`.
        min_node_weight: As in `BoostedTreesEstimator`.
        config: As in `BoostedTreesEstimator`.
        center_bias: As in `BoostedTreesEstimator`.
        pruning_mode: As in `BoostedTreesEstimator`.
        quantile_sketch_epsilon: As in `BoostedTreesEstimator`.
        train_in_memory: As in `BoostedTreesEstimator`.
        warm_start_from: As in `BoostedTreesEstimator`.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.estimator.BoostedTreesRegressor` of TensorFlow 2.10.
    """

    def __init__(
        self,
        feature_columns: Any,
        n_batches_per_layer: int,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
        warm_start_from: Any = None,
    ):
        super().__init__(
            feature_columns,
            n_batches_per_layer,
            RegressionHead(label_dimension, weight_column),
            model_dir=model_dir,
            n_trees=n_trees,
            max_depth=max_depth,
            learning_rate=learning_rate,
            l1_regularization=l1_regularization,
            l2_regularization=l2_regularization,
            tree_complexity=tree_complexity,
            min_node_weight=min_node_weight,
            config=config,
            center_bias=center_bias,
            pruning_mode=pruning_mode,
            quantile_sketch_epsilon=quantile_sketch_epsilon,
            train_in_memory=train_in_memory,
            warm_start_from=warm_start_from,
        )
