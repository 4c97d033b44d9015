"""Private helpers of tensorflow_estimator that programs used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from estimator_core import cluster, summaries, tf1
from estimator_core.estimator import Estimator
from estimator_core.execution.inputs import inputs_from
from estimator_core.export.exporters import ServingExporter
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.optimizers.minimize import get_optimizer
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import config_with_model_dir
from estimator_core.spec.calling import arg_names
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook
from estimator_core.training.continuous_evaluation import evaluate_continuously
from estimator_core.training.specs import EvalSpec, TrainSpec
from estimator_core.training.train_and_evaluate import train_and_evaluate
from estimator_core.v1.heads import (
    CannedBinaryClassHead,
    CannedMultiClassHead,
    CannedRegressionHead,
)
from estimator_core.v1.optimizers import optimizer_for

_Symbol = TypeVar("_Symbol")


class TaskType:
    """Task types of a cluster, as in TF_CONFIG."""

    CHIEF = cluster.CHIEF
    EVALUATOR = cluster.EVALUATOR
    MASTER = cluster.MASTER
    PS = cluster.PS
    WORKER = cluster.WORKER


def estimator_export(*names: str, **others: Any) -> Callable[[_Symbol], _Symbol]:
    """Returns a decorator that changes nothing; the original's registered a public name."""
    del names, others
    return lambda symbol: symbol


def maybe_overwrite_model_dir_and_session_config(
    config: RunConfig | None, model_dir: str | None
) -> RunConfig:
    """Returns `config` with `model_dir`; if both have none, a new temporary directory.

    Raises:
        ValueError: They name two directories, or `config` is not a `RunConfig`.
    """
    return config_with_model_dir(config, model_dir)


def get_optimizer_instance(opt: Any, learning_rate: float | None = None) -> Any:
    """Returns an optimizer of `tf.compat.v1.train`, given by name, as an object or as a function.

    Raises:
        ValueError: An unknown name, a name without a learning rate, or not an optimizer.
    """
    if isinstance(opt, str) and learning_rate is None:
        raise ValueError(
            f"learning_rate must be specified when opt is string. Received: opt={opt!r}"
        )
    found = optimizer_for(opt, learning_rate or 0.0)
    found = found() if callable(found) and not isinstance(found, tf1.train.Optimizer) else found
    if not isinstance(found, tf1.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Received: opt={opt!r}")
    return found


def get_optimizer_instance_v2(opt: Any, learning_rate: float | None = None) -> Any:
    """Returns an optimizer like the `optimizer` of TensorFlow 2's Estimators.

    Raises:
        ValueError: An unknown name.
        TypeError: `opt` is not an optimizer.
    """
    return get_optimizer(opt, learning_rate)


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of the arguments of a function or callable object, without `self`."""
    return arg_names(fn)


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[Hook]]:
    """Returns (features, labels, hooks) from the result of an input_fn.

    Raises:
        ValueError: It is neither a dataset nor tensors, or a tuple whose length is not 2.
    """
    inputs = inputs_from(result, ModeKeys.TRAIN)
    return *inputs.next_batch(), list(inputs.hooks)


def read_eval_metrics(eval_dir: str) -> Mapping[int, Mapping[str, float]]:
    """Returns the metrics of each evaluation in `eval_dir`, by its global step, in order."""
    return summaries.read_evaluations(eval_dir)


class _SavedModelExporter(ServingExporter):
    """Exports at every call."""

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports the model; see `Exporter.export`."""
        del eval_result, is_the_final_export
        return self.export_to(estimator, export_path, checkpoint_path)


class _TrainingExecutor:
    """Runs `train_and_evaluate` or its parts, on one machine.

    Args:
        estimator: See `train_and_evaluate`.
        train_spec: See `train_and_evaluate`.
        eval_spec: See `train_and_evaluate`.
        train_hooks: Further hooks for the training.

    Raises:
        TypeError: An argument has the wrong type.
    """

    def __init__(
        self,
        estimator: Estimator,
        train_spec: TrainSpec,
        eval_spec: EvalSpec,
        train_hooks: Sequence[Hook] | None = None,
    ):
        self.estimator = estimator
        self._train_spec = train_spec._replace(hooks=(*train_spec.hooks, *(train_hooks or ())))
        self._eval_spec = eval_spec

    def run(self) -> Any:
        """Runs this task's part; returns the result of `train_and_evaluate`."""
        return train_and_evaluate(self.estimator, self._train_spec, self._eval_spec)

    def run_local(self) -> Any:
        """Trains and evaluates on one machine."""
        return self.run()

    def run_evaluator(self) -> Any:
        """Evaluates checkpoints until the last step's."""
        return evaluate_continuously(self.estimator, self._eval_spec, self._train_spec.max_steps)


# The heads of TensorFlow 1's canned Estimators. Their losses are sums by default.


def _binary_logistic_head_with_sigmoid_cross_entropy_loss(
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = LossReduction.WEIGHTED_SUM,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Head:
    return CannedBinaryClassHead(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def _multi_class_head_with_softmax_cross_entropy_loss(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = LossReduction.WEIGHTED_SUM,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Head:
    return CannedMultiClassHead(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = LossReduction.WEIGHTED_SUM,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Head:
    return CannedRegressionHead(
        label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name
    )
