"""TPUConfig: a TPUEstimator's settings for TPUs."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_CORES_PER_REPLICA = (1, 2, 4, 8, 16, 32, 64, 128)


class InputPipelineConfig:
    """Ways to call input_fn and distribute its batches to the cores.

    - `PER_SHARD_V1`: once for each core, with the batch size of a core.
    - `PER_HOST_V1`: once for each host, with the batch size of a host; the batch is then split.
    - `PER_HOST_V2`: once for each host, with the batch size of a core; each core takes a batch.
    - `BROADCAST`: once, on the first host; all hosts get the same batches.
    - `SLICED`: once, on the first host; each core takes its slice of a batch.

    Source: `tf.compat.v1.estimator.tpu.InputPipelineConfig`.
    """

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _Fields(NamedTuple):
    iterations_per_loop: int | str
    num_shards: int | None
    num_cores_per_replica: int | None
    per_host_input_for_training: int
    tpu_job_name: str | None
    initial_infeed_sleep_secs: int | None
    input_partition_dims: Sequence[Any] | None
    eval_training_input_configuration: int
    experimental_host_call_every_n_steps: int
    experimental_allow_per_host_v2_parallel_get_next: bool
    experimental_feed_hook: Callable[..., Any] | None


class TPUConfig(_Fields):
    """The TPU settings of a `tpu.RunConfig`. Immutable.

    With `use_tpu=False` only `iterations_per_loop` has an effect: speed is logged every
    `log_step_count_steps / iterations_per_loop` steps, as on a TPU after that number of loops. On virtual
    shards `tpu_job_name`, `initial_infeed_sleep_secs`, `experimental_feed_hook` and
    `experimental_allow_per_host_v2_parallel_get_next` have none.

    Example:
        >>> TPUConfig(iterations_per_loop=100, num_shards=8).num_shards
        8

    Args:
        iterations_per_loop: Training steps of one loop, around which hooks are called; or the time of a
            loop, such as "30s", "5m" or "1h": the first loop makes one step, and the time of a step
            determines the steps of the next loops. The last loop ends with training.
        num_shards: Copies of the model; None takes the number that fits the 8 cores of a TPU board.
        num_cores_per_replica: Cores of one copy: 1, 2, 4, 8, 16, 32, 64 or 128; None is 1. On virtual shards
            a copy computes the same on one as on many.
        per_host_input_for_training: One of `InputPipelineConfig`, or True for `PER_HOST_V1`, False
            for `PER_SHARD_V1`.
        tpu_job_name: Job of the cluster with the TPU; None finds it.
        initial_infeed_sleep_secs: Seconds to wait before the first batch is sent; None does not wait.
        input_partition_dims: One or two entries, for features and labels, in their structure: for each
            tensor the number of parts of each dimension, for the cores of a copy, or None. Needs
            `PER_HOST_V2` and `num_cores_per_replica`. Virtual shards check it and split nothing.
        eval_training_input_configuration: `PER_HOST_V1` or `SLICED`, for evaluation.
        experimental_host_call_every_n_steps: Steps between two runs of a `host_call` on a TPU.
        experimental_allow_per_host_v2_parallel_get_next: Lets cores take batches in any order if true.
        experimental_feed_hook: Class of a hook that feeds the TPU; None is the default one.

    Raises:
        ValueError: A value is out of range, or contradicts another.
        TypeError: A number has another type.

    Source: `tf.compat.v1.estimator.tpu.TPUConfig`.
    """

    __slots__ = ()

    def __new__(
        cls,
        iterations_per_loop: int | str = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: bool | int = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Sequence[Any] | None = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
        experimental_allow_per_host_v2_parallel_get_next: bool = False,
        experimental_feed_hook: Callable[..., Any] | None = None,
    ) -> TPUConfig:
        """Returns the checked TPUConfig."""
        _check_iterations(iterations_per_loop)
        if num_shards is not None:
            check_positive_int(num_shards, "TPUConfig num_shards")
        if initial_infeed_sleep_secs is not None and initial_infeed_sleep_secs != 0:
            check_positive_int(initial_infeed_sleep_secs, "TPUConfig initial_infeed_sleep_secs")
        if num_cores_per_replica is not None and num_cores_per_replica not in _CORES_PER_REPLICA:
            raise ValueError(
                f"num_cores_per_replica must be one of {_CORES_PER_REPLICA}. "
                f"Received: num_cores_per_replica={num_cores_per_replica!r}"
            )
        if isinstance(per_host_input_for_training, bool):
            per_host_input_for_training = (
                InputPipelineConfig.PER_HOST_V1
                if per_host_input_for_training
                else InputPipelineConfig.PER_SHARD_V1
            )
        _check_partition(input_partition_dims, num_cores_per_replica, per_host_input_for_training)
        if eval_training_input_configuration not in (
            InputPipelineConfig.PER_HOST_V1,
            InputPipelineConfig.SLICED,
        ):
            raise ValueError(
                "eval_training_input_configuration must be PER_HOST_V1 or SLICED. Received: "
                f"eval_training_input_configuration={eval_training_input_configuration!r}"
            )
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            per_host_input_for_training,
            tpu_job_name,
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
            experimental_allow_per_host_v2_parallel_get_next,
            experimental_feed_hook,
        )


def check_positive_int(value: Any, name: str) -> None:
    """Checks that `value` is a whole number above 0."""
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be int. Received: {value!r}")
    if value <= 0:
        raise ValueError(f"{name} must be positive. Received: {value}")


def _check_iterations(value: int | str) -> None:
    if isinstance(value, str):
        is_valid = re.fullmatch(r"0*[1-9]\d*[smh]?", value) is not None
    else:
        is_valid = isinstance(value, numbers.Integral) and value is not True and value > 0
    if not is_valid:
        raise ValueError(
            "iterations_per_loop must be a whole number above 0, or a time like '30s', '5m' or '1h'. "
            f"Received: iterations_per_loop={value!r}"
        )


def _check_partition(
    dims: Sequence[Any] | None, num_cores_per_replica: int | None, input_config: int
) -> None:
    if dims is None:
        return
    if len(dims) not in (1, 2):
        raise ValueError(
            "input_partition_dims must have one or two entries, for features and for labels. "
            f"Received: input_partition_dims={dims!r}"
        )
    if input_config != InputPipelineConfig.PER_HOST_V2:
        raise ValueError(
            "input_partition_dims is only supported with per_host_input_for_training="
            f"InputPipelineConfig.PER_HOST_V2. Received: per_host_input_for_training={input_config!r}"
        )
    if num_cores_per_replica is None:
        raise ValueError(
            "input_partition_dims requires setting num_cores_per_replica. Received: "
            f"input_partition_dims={dims!r}, num_cores_per_replica=None"
        )
