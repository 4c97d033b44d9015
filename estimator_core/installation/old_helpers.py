"""Private helpers of tensorflow_estimator that programs used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from estimator_core import cluster, summaries, tf1
from estimator_core.execution.inputs import inputs_from
from estimator_core.export.exporters import ServingExporter
from estimator_core.optimizers.minimize import get_optimizer
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import config_with_model_dir
from estimator_core.spec.calling import arg_names
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook
from estimator_core.v1.model_fns import v1_optimizer

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
    """Returns `config` with `model_dir`; if both have none, a new temporary directory."""
    return config_with_model_dir(config, model_dir)


def get_optimizer_instance(opt: Any, learning_rate: float | None = None) -> Any:
    """Returns an optimizer of `tf.compat.v1.train`, given by name, as an object or as a function."""
    if isinstance(opt, str) and learning_rate is None:
        raise ValueError(f"learning_rate must be specified when opt is string. Received: opt={opt!r}")
    found = v1_optimizer(opt, learning_rate or 0.0)
    found = found() if callable(found) and not isinstance(found, tf1.train.Optimizer) else found
    if not isinstance(found, tf1.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Received: opt={opt!r}")
    return found


def get_optimizer_instance_v2(opt: Any, learning_rate: float | None = None) -> Any:
    """Returns an optimizer like the `optimizer` of TensorFlow 2's Estimators."""
    return get_optimizer(opt, learning_rate)


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of the arguments of a function or callable object, without `self`."""
    return arg_names(fn)


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[Hook]]:
    """Returns (features, labels, hooks) from the result of an input_fn."""
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
