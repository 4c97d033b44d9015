"""Wrappers of a TPUEstimator's input_fn and model_fn, which pass the batch size in their params."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.execution.shards.shard_sums import replaced_sums
from estimator_core.hooks.host_call import HostCallHook
from estimator_core.logs import logger
from estimator_core.spec.calling import arg_names
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn, ModelFn
from estimator_core.tpu.embedding_tables import EmbeddingTables
from estimator_core.tpu.experimental.embedding_config_spec import EmbeddingConfigSpec
from estimator_core.tpu.sharding import ShardedModes
from estimator_core.tpu.tpu_config import TPUConfig
from estimator_core.tpu.tpu_context import TPUContext
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec

_READS = ("ReadVariableOp",)
_CALLS = ("Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While")
_WRITES = ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp")
_REF_WRITES = ("Assign", "AssignAdd", "AssignSub")
BATCH_SIZE = "batch_size"
CONTEXT = "context"
RESERVED_PARAMS = (BATCH_SIZE, CONTEXT)
_INPUT_CONTEXT = "input_context"
_USE_TPU = "use_tpu"


def input_fn_with_batch_size(
    input_fn: InputFn,
    batch_size: int | None,
    num_shards: int | None = None,
    num_cores_per_replica: int | None = None,
) -> Callable[..., Any]:
    """Returns an input_fn that passes the batch size to `input_fn` in `params`.

    `num_shards`: number of shards, for the `TPUContext` in `params["context"]`. None means no shards.
    """
    if not callable(input_fn):
        raise TypeError(f"input_fn must be callable. Received: input_fn={input_fn!r}")
    names = arg_names(input_fn)
    _check_takes_params(names, "input_fn", input_fn)

    def call(**arguments: Any) -> Any:
        if batch_size is not None:
            _set(arguments["params"], BATCH_SIZE, batch_size)
        if num_shards is not None:
            where = arguments["input_context"]
            context = TPUContext(
                num_shards, where.input_pipeline_id, where.num_input_pipelines, num_cores_per_replica
            )
            _set(arguments["params"], CONTEXT, context)
            if _INPUT_CONTEXT not in names:
                del arguments[_INPUT_CONTEXT]
        return input_fn(**arguments)

    return with_arguments(call, names if num_shards is None else {*names, _INPUT_CONTEXT})


def rebatched_input_fn(
    input_fn: InputFn, batch_size: int | None, drop_remainder: bool, batch_axis: Sequence[int] | None = None
) -> Callable[..., Any]:
    """Returns an input_fn whose batches have a known size.

    `input_fn`: the user's input_fn; it need not take `params`.
    `batch_size`: examples of a batch. A dataset with batches of another or an unknown size is rebatched;
    None rebatches none.
    `batch_axis`: dimensions of features and labels along which examples lie; None is the first.
    """
    if not callable(input_fn):
        raise TypeError(f"input_fn must be callable. Received: input_fn={input_fn!r}")
    names = arg_names(input_fn)

    def call(**arguments: Any) -> Any:
        result = input_fn(**{name: arguments[name] for name in names if name in arguments})
        if batch_size is None:
            return result
        is_dataset = isinstance(result, tf.data.Dataset)
        is_first = not any(batch_axis or ())
        sizes = _static_batch_sizes(result.element_spec if is_dataset else result, batch_axis)
        if sizes and batch_size in sizes:
            return result
        if is_dataset and is_first and (sizes is None or len(sizes) == 1):
            return result.rebatch(batch_size, drop_remainder)
        if sizes:
            raise ValueError(
                f"The batches that input_fn returns must have {batch_size} examples, which are divided among "
                "the shards: let it batch by params['batch_size'], or return a Dataset with features and "
                f"labels of one size on the first dimension. Received: batches of {sorted(sizes)}, "
                f"batch_axis={batch_axis}"
            )
        return result

    return with_arguments(call, {*names, "params"})


def _static_batch_sizes(batch: Any, batch_axis: Sequence[int] | None) -> set[int] | None:
    """Returns the sizes of features and labels along the batch axis; None if one is unknown.

    `batch`: nested structure of tensors, or of their specs, and None.
    `batch_axis`: dimension of each of them along which examples lie; None is the first.
    """
    parts = [part for part in tf.nest.flatten(batch) if part is not None]
    sizes: set[int] = set()
    for part, axis in zip(parts, batch_axis or [0] * len(parts), strict=False):
        shape = tf.TensorShape(getattr(part, "shape", None))
        if not shape.rank or axis >= shape.rank or shape[axis] is None:
            return None
        sizes.add(shape[axis])
    return sizes


def model_fn_on_host(
    model_fn: Callable[..., TPUEstimatorSpec | EstimatorSpec], batch_sizes: Mapping[str, int | None]
) -> ModelFn:
    """Returns the model_fn of an `Estimator` that runs a TPUEstimator's model_fn without a TPU.

    The user's model_fn finds False in `params["use_tpu"]`.

    `batch_sizes`: dict of mode to `params["batch_size"]`; None leaves it out.
    """
    names = arg_names(model_fn)

    def call(features: Any, mode: str, **arguments: Any) -> EstimatorSpec:
        if batch_sizes.get(mode) is not None and "params" in names:
            _set(arguments["params"], BATCH_SIZE, batch_sizes[mode])
        if "mode" in names:
            arguments["mode"] = mode
        logger.info("Running %s on CPU/GPU", mode)
        with without_cross_replica_sums(tf1.get_default_graph()):
            spec = call_with_use_tpu(model_fn, False, features=features, **arguments)
            if isinstance(spec, TPUEstimatorSpec):
                spec = spec.with_metric_fn()
        if mode == ModeKeys.TRAIN:
            read_before_write(spec.train_op, *_host_call_tensors(spec))
        return spec

    return with_arguments(call, {*names, "mode"})


def model_fn_on_shards(
    model_fn: Callable[..., TPUEstimatorSpec | EstimatorSpec],
    on_host: ModelFn,
    sharded: ShardedModes,
    config: TPUConfig,
    embedding_config_spec: EmbeddingConfigSpec | None = None,
) -> ModelFn:
    """Returns the model_fn of an `Estimator` that runs some modes of a TPUEstimator on shards.

    There the user's model_fn finds True in `params["use_tpu"]`, and a `TPUContext` in `params["context"]`.

    `embedding_config_spec`: columns whose tables model_fn's optimizer does not train; or None.
    """
    names = arg_names(model_fn)

    def call(features: Any, mode: str, **arguments: Any) -> EstimatorSpec:
        if mode not in sharded.modes:
            return on_host(features, mode=mode, **arguments)
        num_shards = sharded.num_shards(config)
        if "params" in names:
            _set(arguments["params"], BATCH_SIZE, sharded.model_batch_size(mode, config))
            context = TPUContext(num_shards, num_cores_per_replica=config.num_cores_per_replica)
            _set(arguments["params"], CONTEXT, context)
        if "mode" in names:
            arguments["mode"] = mode
        logger.info("Running %s on %s virtual shards of this machine's CPU", mode, num_shards)
        tables = None
        if embedding_config_spec is not None and mode == ModeKeys.TRAIN:
            tables = EmbeddingTables(embedding_config_spec)
        with current_execution().taking_gradients(tables):
            spec = call_with_use_tpu(model_fn, True, features=features, **arguments)
        if isinstance(spec, TPUEstimatorSpec):
            spec = spec.for_shards(config.experimental_host_call_every_n_steps)
        elif mode != ModeKeys.TRAIN and not sharded.adds_up_gradients:
            raise RuntimeError(
                f"With use_tpu=True, model_fn must return a TPUEstimatorSpec in mode {mode!r}, or the "
                f"TPUEstimator be made by to_tpu_estimator. Received: {type(spec).__name__}"
            )
        if tables is not None:
            spec = tables.with_updates(spec)
        if mode == ModeKeys.TRAIN:
            read_before_write(spec.train_op, *_host_call_tensors(spec))
        return spec

    return with_arguments(call, {*names, "mode"})


def replaceable(model_fn: ModelFn) -> tuple[ModelFn, Callable[..., Any]]:
    """Returns a function that calls `model_fn`, and `with_wrapper(wrapper, other)`.

    Old programs put a wrapper around the function. `with_wrapper` returns their wrapper around `other`.
    """
    current = contextvars.ContextVar("model_fn", default=model_fn)

    def call(
        features: Any, labels: Any = None, mode: Any = None, config: Any = None, params: Any = None
    ) -> Any:
        arguments = {"labels": labels, "mode": mode, "config": config, "params": params}
        names = arg_names(current.get())
        return current.get()(
            features=features, **{name: value for name, value in arguments.items() if name in names}
        )

    def with_wrapper(wrapper: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
        def call_wrapper(**arguments: Any) -> Any:
            token = current.set(other)
            try:
                return wrapper(**arguments)
            finally:
                current.reset(token)

        return other if wrapper is call else with_arguments(call_wrapper, arg_names(wrapper))

    return with_arguments(call, arg_names(model_fn)), with_wrapper


def call_with_use_tpu(
    model_fn: Callable[..., TPUEstimatorSpec | EstimatorSpec], use_tpu: bool, **arguments: Any
) -> Any:
    """Calls the user's model_fn with `use_tpu` in its `params`, and returns its result."""
    _check_takes_params(arg_names(model_fn), "model_fn", model_fn)
    _set(arguments["params"], _USE_TPU, use_tpu)
    return model_fn(**arguments)


def _host_call_tensors(spec: EstimatorSpec) -> list[Any]:
    hooks = [hook for hook in spec.training_hooks if isinstance(hook, HostCallHook)]
    flat = tf.nest.flatten([hook.tensors for hook in hooks], expand_composites=True)
    return [value for value in flat if tf.is_tensor(value)]


def _check_takes_params(names: Iterable[str], kind: str, function: Callable[..., Any]) -> None:
    if "params" not in names:
        raise ValueError(
            f"{kind} ({function}) does not include params argument, required by TPUEstimator to pass "
            f"batch size as params['batch_size']. Received: arguments {tuple(names)}"
        )


def with_arguments(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Returns the function with a signature of the arguments `names`, since callers inspect it."""
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(names)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _set(params: Any, name: str, value: Any) -> None:
    """Sets a hyperparameter in a dict, or in an object like HParams."""
    if not hasattr(params, "set_hparam"):
        params[name] = value
    elif name in params:
        params.set_hparam(name, value)
    else:
        params.add_hparam(name, value)


def without_cross_replica_sums(graph: tf.Graph) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which a cross-replica sum added to `graph` is the replica's own value.

    With one replica the sum is the value itself, so an identity replaces it.
    """

    def identity(value: tf.Tensor, groups: tf.Tensor, name: str) -> tf.Operation:
        del groups
        return tf.identity(value, name=name).op

    return replaced_sums(graph, identity, "leave them out when params['use_tpu'] is False")


def read_before_write(train_op: Any, *others: Any) -> None:
    """Orders a step's reads of the global step before its increment, in `train_op` and the ops run with it.

    A learning rate schedule reads the global step, the optimizer increments it, and the graph does not
    order the two: on a busy machine a schedule occasionally sees the next step. This function adds the
    order: direct reads, then functions (`tf.cond`, `tf.while_loop`, `tf.function`), then
    direct writes. Reads that the graph orders after a write stay there. It adds nothing that `train_op`
    does not run anyway.

    `train_op`: operation or `Tensor` of one training step, in the default graph.

    Source: tf.estimator 2.15 leaves the order open, and almost always reads first.
    """
    run = [value.op if tf.is_tensor(value) else value for value in (train_op, *others)]
    steps = _with_ancestors(run)
    reads, calls, writes = (
        [user for user in users if user in steps] for users in _users(tf1.train.get_global_step())
    )
    late = [user for user in reads + calls if not _with_ancestors([user]).isdisjoint(writes)]
    reads, calls = ([user for user in users if user not in late] for users in (reads, calls))
    _put_before(reads, calls + writes)
    _put_before(calls, writes)


def _users(variable: Any) -> tuple[list[tf.Operation], ...]:
    """Returns the direct reads of a variable, the functions that take it, and its direct writes."""
    if hasattr(variable, "handle"):
        users = variable.handle.consumers()
        kinds = (_READS, _CALLS, _WRITES)
        return tuple([user for user in users if user.type in kind] for kind in kinds)
    # With `disable_resource_variables` a read is not a copy: the operations that use its value come first.
    users = variable.op.outputs[0].consumers()
    reads = [read for user in users if user.type == "Identity" for read in _reads_through(user)]
    return reads, [], [user for user in users if user.type in _REF_WRITES]


def _reads_through(identity: tf.Operation) -> list[tf.Operation]:
    """Returns the operations that read a value through identities, which don't copy it."""
    reads = []
    for user in identity.outputs[0].consumers():
        reads += _reads_through(user) if user.type == "Identity" else [user]
    return reads or [identity]


def _put_before(first: list[tf.Operation], then: list[tf.Operation]) -> None:
    """Runs `first` before `then`, except for pairs that the graph orders the other way."""
    for late in then:
        early = [operation for operation in first if late not in _with_ancestors([operation])]
        # TensorFlow has no public way to order existing operations.
        late._add_control_inputs(early)  # noqa: SLF001


def _with_ancestors(operations: list[tf.Operation]) -> set[tf.Operation]:
    """Returns the operations, and all that have to run before them."""
    reached = set(operations)
    pending = list(operations)
    while pending:
        operation = pending.pop()
        for source in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if source not in reached:
                reached.add(source)
                pending.append(source)
    return reached
