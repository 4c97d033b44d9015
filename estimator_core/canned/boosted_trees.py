"""Gradient boosted trees, as Estimators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from estimator_core.boosted_trees.columns import checked_columns, column_ranges
from estimator_core.boosted_trees.early_stopping import TreesEarlyStopping
from estimator_core.boosted_trees.explanations import Explainer, feature_importances, sigmoid
from estimator_core.boosted_trees.forest_variables import read_checkpoint
from estimator_core.boosted_trees.model_fn import MATRIX, boosted_trees_model_fn, select_for_trees
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.estimator import Estimator
from estimator_core.execution.base import Execution
from estimator_core.graphs.program import Program
from estimator_core.heads import BinaryClassHead, Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import selected_predictions
from estimator_core.spec.types import Hook, InputFn


class BoostedTreesEstimator(Estimator):
    """Gradient boosted trees with a head of your choice. LightGBM grows them.

    The training data are read once, into memory: `n_batches_per_layer` batches are the data set. A layer
    of a tree then takes `n_batches_per_layer` steps, so that `max_steps` and the intervals of hooks mean
    the same as if each step read a batch. If training ends within a tree, the tree has the layers grown so
    far; a later training finishes it.

    Checkpoints hold the forest, and predictions use TensorFlow's own operations: LightGBM is needed
    for training and TreeSHAP, not for evaluation, prediction or serving.

    Example:
        >>> age = tf.feature_column.numeric_column("age")
        >>> head = PoissonRegressionHead()
        >>> estimator = BoostedTreesEstimator([age], 1, head)  # doctest: +SKIP

    Args:
        feature_columns: Numeric, bucketized, indicator and categorical columns. A missing number is
            NaN; a categorical column counts as an indicator column of it.
        n_batches_per_layer: Number of batches in the data set.
        head: Head that turns logits into predictions, loss and metrics. An iteration has a tree for each
            logit. Cross entropy and squared error use LightGBM's objectives, any other loss its
            derivatives.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        weight_column: Weight column of the head, or None: the trees use the head's weights.
        n_trees: Number of iterations of boosting; training ends when their trees are finished.
        max_depth: Number of layers of a tree.
        learning_rate: Factor of the values of each tree.
        l1_regularization: Penalty on the absolute values of leaves, for each example of the data.
        l2_regularization: Penalty on the squared values of leaves, for each example of the data.
        tree_complexity: Minimum gain of a split, for each example of the data, with pruning_mode "pre".
        min_node_weight: Minimum sum of Hessians in a leaf, for each example of the data.
        config: `RunConfig`; None means a default one. `intra_op_parallelism_threads` of its
            `session_config` is also the number of threads that grow trees.
        center_bias: Starts from the logits of the labels' average if true.
        pruning_mode: "none", or "pre": no split that gains less than `tree_complexity`.
        quantile_sketch_epsilon: 1 / the number of buckets of a numeric column.
        train_in_memory: True requires `n_batches_per_layer=1`; else without effect, since training always
            is in memory.
        warm_start_from: Checkpoint, SavedModel or `WarmStartSettings` of boosted trees; `n_trees` are
            grown on top of theirs.
        early_stopping: `TreesEarlyStopping` ends the training when the loss on held-out rows stops falling;
            None grows all trees.
        min_node_examples: Minimum number of examples in a leaf.

    Raises:
        ValueError: An argument has an invalid value.

    Source: `tf.estimator.BoostedTreesEstimator` of TensorFlow 2.10. docs/boosted-trees.md lists the
    meaning of each argument for LightGBM, and the differences.
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
        early_stopping: TreesEarlyStopping | None = None,
        min_node_examples: int = 1,
    ):
        head_column = getattr(head, "weight_column", None)
        names = [getattr(column, "key", column) for column in (weight_column, head_column)]
        if weight_column is not None and names[0] != names[1]:
            raise ValueError(
                "The trees use the weights of the head: give the head the weight_column. Received: "
                f"weight_column={weight_column!r}, weight_column of the head={head_column!r}"
            )
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
            min_node_examples,
        )
        self._head = head
        self._columns = checked_columns(feature_columns)
        model_fn = boosted_trees_model_fn(head, self._columns, self._settings, early_stopping=early_stopping)
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
            ValueError: The config asks for several devices or a cluster.
        """
        all_steps = self._settings.steps_per_tree * self._settings.n_trees
        execution = execution or select_for_trees(self.config, mode, all_steps)
        return super().build_program(mode, input_fn, starts_from_checkpoint, execution)

    def experimental_feature_importances(self, normalize: bool = False) -> dict[str, float]:
        """Returns the total gain of each feature column's splits, the largest first.

        Args:
            normalize: Divides the gains by their sum if true.

        Raises:
            ValueError: There is no checkpoint yet.

        Source: `tf.estimator.BoostedTreesClassifier.experimental_feature_importances`. LightGBM's gains
        are of sums over examples; tf.estimator's were of means.
        """
        forest = read_checkpoint(self._newest_checkpoint()).forest
        return feature_importances(forest, column_ranges(self._columns), normalize)

    def experimental_predict_with_explanations(
        self,
        input_fn: InputFn,
        predict_keys: Any = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        method: str = "paths",
    ) -> Iterator[dict[str, Any]]:
        """Yields the predictions, and the contribution of each feature column to them.

        In addition to the predictions of `predict` there are "bias", a number, and "dfc", directional
        feature contributions: a dict of column name to number, the largest first. They sum to the
        probability of class 1 with a `BinaryClassHead`, and to the logit with any other head.

        Args:
            input_fn: See `predict`.
            predict_keys: See `predict`.
            hooks: See `predict`.
            checkpoint_path: See `predict`.
            method: "paths" credits the change of the prediction at each step down a tree to the column of
                the split. "tree_shap" is TreeSHAP of the logit: the values sum to it with any head.

        Raises:
            ValueError: There is no checkpoint, or the model has several logits.

        Source: `tf.estimator.BoostedTreesClassifier.experimental_predict_with_explanations`. It has no
        `method`.
        """
        checkpoint_path = checkpoint_path or self._newest_checkpoint()
        link = sigmoid if isinstance(self._head, BinaryClassHead) else np.asarray
        explainer = Explainer(read_checkpoint(checkpoint_path), column_ranges(self._columns), method, link)
        model_fn = boosted_trees_model_fn(self._head, self._columns, self._settings, predicts_matrix=True)
        estimator = Estimator(model_fn, self.model_dir, self.config)
        batches = estimator.predict(
            input_fn, hooks=hooks, checkpoint_path=checkpoint_path, yield_single_examples=False
        )
        for batch in batches:
            explained = explainer.explain(batch.pop(MATRIX))
            wanted = selected_predictions(batch, predict_keys)
            for index, (bias, contributions) in enumerate(explained):
                of_example = {name: value[index] for name, value in wanted.items()}
                yield {**of_example, "bias": bias, "dfc": contributions}

    def _newest_checkpoint(self) -> str:
        """Returns the path of the newest checkpoint."""
        checkpoint_path = self.latest_checkpoint()
        if not checkpoint_path:
            raise ValueError(
                f"Couldn't find trained model at {self.model_dir}: call train first. Received: no checkpoint"
            )
        return checkpoint_path


class BoostedTreesClassifier(BoostedTreesEstimator):
    """Gradient boosted trees for two classes, or more. LightGBM grows them.

    Example:
        >>> age = tf.feature_column.numeric_column("age")
        >>> classifier = BoostedTreesClassifier([age], n_batches_per_layer=1)
        >>> classifier.train(input_fn, max_steps=100)  # doctest: +SKIP

    Args: same as `BoostedTreesEstimator`, except:
        n_batches_per_layer: Number of batches in the data set.
        model_dir: Directory of checkpoints and summaries.
        n_classes: Number of classes, at least 2; three or more classes have their own trees each.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.

    Raises:
        ValueError: An argument has an invalid value.

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
        early_stopping: TreesEarlyStopping | None = None,
        min_node_examples: int = 1,
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
            early_stopping=early_stopping,
            min_node_examples=min_node_examples,
        )


class BoostedTreesRegressor(BoostedTreesEstimator):
    """Gradient boosted trees for numbers. LightGBM grows them.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = BoostedTreesRegressor([size], n_batches_per_layer=1)
        >>> regressor.train(input_fn, max_steps=100)  # doctest: +SKIP

    Args: same as `BoostedTreesEstimator`, except:
        n_batches_per_layer: Number of batches in the data set.
        model_dir: Directory of checkpoints and summaries.
        label_dimension: Number of values in a label; each has its own trees.
        weight_column: Name of the feature that holds example weights, or a numeric column.

    Raises:
        ValueError: An argument has an invalid value.

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
        early_stopping: TreesEarlyStopping | None = None,
        min_node_examples: int = 1,
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
            early_stopping=early_stopping,
            min_node_examples=min_node_examples,
        )
