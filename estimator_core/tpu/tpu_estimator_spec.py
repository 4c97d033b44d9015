"""TPUEstimatorSpec: the result of a TPUEstimator's model_fn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_core.hooks.host_call import HostCallHook
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.export_outputs import ExportOutput
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: tuple[Callable[..., Any], Any] | None
    export_outputs: Mapping[str, ExportOutput] | None
    scaffold_fn: Callable[[], Any] | None
    host_call: tuple[Callable[..., Any], Any] | None
    training_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class TPUEstimatorSpec(_Fields):
    """The ops and tensors of one mode, divided into those on the TPU and those on its host.

    Metrics, the host call and the scaffold are functions, because a host calls them: with the values
    from the TPU, or, with `use_tpu=False`, with the tensors themselves.

    Example:
        >>> def metric_fn(labels, logits):
        ...     return {"accuracy": tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, 1))}
        >>> TPUEstimatorSpec(  # doctest: +SKIP
        ...     mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        ... )

    Args:
        mode: One of `ModeKeys`.
        predictions: `Tensor`, or dict of name to `Tensor`, `[batch_size, ...]` each.
        loss: `Tensor` with one element.
        train_op: Operation or `Tensor` of one training step.
        eval_metrics: Pair of a function and its tensors: a list, by position, or
            a dict, by name. It returns metrics in the form of `EstimatorSpec`'s `eval_metric_ops`.
        export_outputs: `ExportOutput`s by signature name; None exports `predictions`.
        scaffold_fn: Function that returns a `tf.compat.v1.train.Scaffold`; None is a default one.
        host_call: Pair like `eval_metrics`. The function's results, tensors in any structure, are
            run with every step, for instance to write summaries.
        training_hooks: `SessionRunHook`s for training.
        evaluation_hooks: `SessionRunHook`s for evaluation.
        prediction_hooks: `SessionRunHook`s for prediction.

    Raises:
        ValueError: An argument that the mode needs is missing, or a pair is invalid.
        TypeError: An argument has the wrong type.
        RuntimeError: The number of a function's arguments differs from the length of its list.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimatorSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: tuple[Callable[..., Any], Any] | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        scaffold_fn: Callable[[], Any] | None = None,
        host_call: tuple[Callable[..., Any], Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> TPUEstimatorSpec:
        """Returns the checked TPUEstimatorSpec."""
        _check_call(eval_metrics, "eval_metrics")
        _check_call(host_call, "host_call")
        checked = EstimatorSpec(
            mode,
            predictions,
            loss,
            train_op,
            export_outputs=export_outputs,
            training_hooks=training_hooks,
            evaluation_hooks=evaluation_hooks,
            prediction_hooks=prediction_hooks,
        )
        return super().__new__(
            cls,
            mode,
            checked.predictions,
            checked.loss,
            checked.train_op,
            eval_metrics,
            checked.export_outputs,
            scaffold_fn,
            host_call,
            checked.training_hooks,
            checked.evaluation_hooks,
            checked.prediction_hooks,
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """Returns the `EstimatorSpec` for running all parts on the host.

        Raises:
            TypeError: The results of `eval_metrics` or `host_call` can't be run.
        """
        spec = self.with_metric_fn()
        if isinstance(spec.eval_metric_ops, MetricFn):
            return spec._replace(eval_metric_ops=spec.eval_metric_ops())
        return spec

    def with_metric_fn(self) -> EstimatorSpec:
        """Returns the same `EstimatorSpec`, except that the function of `eval_metrics` is not called yet.

        Raises:
            TypeError: The results of `host_call` can't be run.
        """
        hooks = self._host_call_hooks()
        for hook in hooks:
            hook.call(hook.tensors)
        return self._with_hooks(hooks)

    def for_shards(self, host_call_every_n_steps: int = 1) -> EstimatorSpec:
        """Returns an `EstimatorSpec` whose `eval_metrics` and `host_call` are not called yet.

        Args:
            host_call_every_n_steps: Training steps between two runs of the host call.
        """
        every = host_call_every_n_steps if self.mode == ModeKeys.TRAIN else 1
        return self._with_hooks(self._host_call_hooks(every))

    def _host_call_hooks(self, every_n_steps: int = 1) -> tuple[HostCallHook, ...]:
        return () if self.host_call is None else (HostCallHook(*self.host_call, every_n_steps),)

    def _with_hooks(self, hooks: tuple[Any, ...]) -> EstimatorSpec:
        metrics = None if self.eval_metrics is None else MetricFn(*self.eval_metrics)
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            metrics,
            self.export_outputs,
            training_hooks=self.training_hooks + hooks,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            evaluation_hooks=self.evaluation_hooks + hooks,
            prediction_hooks=self.prediction_hooks + hooks,
        )


def _check_call(call: Any, name: str) -> None:
    """Checks that `call` is a function and the tensors to call it with."""
    if call is None:
        return
    if not isinstance(call, (tuple, list)) or len(call) != 2:
        raise ValueError(f"{name} should be a tuple of two: a function and its tensors. Received: {call!r}")
    function, tensors = call
    if not callable(function):
        raise TypeError(f"{name}[0] should be callable. Received: {function!r}")
    if not isinstance(tensors, (tuple, list, dict)):
        raise ValueError(
            f"{name}[1] should be a list or tuple of tensors, or a dict of them by argument name. "
            f"Received: {tensors!r}"
        )
    if isinstance(tensors, dict):
        return
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return
    num_arguments = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if num_arguments != len(tensors):
        raise RuntimeError(
            f"The function of {name} takes {num_arguments} arguments, and {len(tensors)} tensors are "
            f"given. Received: {name}={call!r}"
        )
