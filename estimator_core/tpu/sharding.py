"""The division of a TPUEstimator's batches into shards, by mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from estimator_core.execution.base import LoopSize
from estimator_core.execution.sharded import Sharding
from estimator_core.execution.shards.shard_inputs import ShardInput
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.tpu.tpu_config import InputPipelineConfig, TPUConfig

CORES_OF_A_BOARD = 8
"""Default number of cores of a TPUEstimator's shards: those of a TPU v2 or v3 board."""

_SECS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_NAMES = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}


@dataclasses.dataclass(frozen=True)
class ShardedModes:
    """The modes of a TPUEstimator that run on shards, and their batches."""

    modes: frozenset[str]  # Modes that run on shards
    # Dict of mode to the examples of a batch on all shards together; None if not given.
    batch_sizes: Mapping[str, int | None]
    batch_axis: tuple[int, ...] | None = None  # See `TPUEstimator`
    # True if the gradients of any optimizer are averaged over the shards.
    adds_up_gradients: bool = False
    takes_sparse: bool = False  # True if there may be sparse features

    def num_shards(self, config: TPUConfig) -> int:
        """Returns the number of copies of the model."""
        cores = config.num_cores_per_replica or 1
        if cores > CORES_OF_A_BOARD and not config.num_shards:
            raise ValueError(
                f"A board has {CORES_OF_A_BOARD} cores: with a larger num_cores_per_replica, set the "
                "number of copies of the model by TPUConfig(num_shards=...). Received: "
                f"num_cores_per_replica={cores}, num_shards=None"
            )
        if cores > CORES_OF_A_BOARD and config.per_host_input_for_training != InputPipelineConfig.PER_HOST_V2:
            raise ValueError(
                f"A host has {CORES_OF_A_BOARD} cores: a copy of the model with more cores needs "
                "per_host_input_for_training=InputPipelineConfig.PER_HOST_V2. Received: "
                f"num_cores_per_replica={cores}, "
                f"per_host_input_for_training={config.per_host_input_for_training}"
            )
        return config.num_shards or CORES_OF_A_BOARD // cores

    def input_batch_size(self, mode: str, config: TPUConfig) -> int:
        """Returns the "batch_size" in input_fn's params."""
        size = self._checked_size(mode, config)
        kind = _kind(mode, config)
        is_of_a_shard = kind in (ShardInput.NEXT, ShardInput.OWN)
        return size // self.num_shards(config) if is_of_a_shard else size

    def model_batch_size(self, mode: str, config: TPUConfig) -> int:
        """Returns the "batch_size" in model_fn's params: that of a shard."""
        size = self._checked_size(mode, config)
        return size if _kind(mode, config) is ShardInput.SAME else size // self.num_shards(config)

    def sharding(self, mode: str, config: TPUConfig) -> Sharding | None:
        """Returns the sharding of a mode; None without shards."""
        if mode not in self.modes:
            return None
        kind = _kind(mode, config)
        if mode == ModeKeys.PREDICT and self.batch_axis is not None and kind is ShardInput.SPLIT:
            raise TypeError(
                "For mode PREDICT, batch_axis is not supported: batches are split along the first "
                f"dimension. Received: batch_axis={self.batch_axis}"
            )
        # As in 2.15, only a batch of PER_HOST_V1 is split along other dimensions.
        is_sliced = config.eval_training_input_configuration == InputPipelineConfig.SLICED
        takes_axis = kind is ShardInput.SPLIT and not (is_sliced and mode != ModeKeys.TRAIN)
        return Sharding(
            self.num_shards(config),
            kind,
            self.batch_axis if takes_axis else None,
            self.input_batch_size(mode, config),
            self.adds_up_gradients,
            loop_size=loop_size(config.iterations_per_loop),
            takes_sparse=self.takes_sparse,
            cores_per_replica=config.num_cores_per_replica or 1,
        )

    def _checked_size(self, mode: str, config: TPUConfig) -> int:
        size = self.batch_sizes[mode]
        name = f"{_NAMES[mode]}_batch_size"
        if size is None:
            raise ValueError(
                f"{name} can't be None when mode {mode!r} runs with use_tpu=True. Received: {name}=None"
            )
        shards = self.num_shards(config)
        if size % shards and not _is_broadcast(mode, config):
            raise ValueError(
                f"{name} {size} must be divisible by the number of shards {shards}"
                + ("" if config.num_shards else "; TPUConfig(num_shards=...) sets another number")
                + f". Received: {name}={size}, num_shards={config.num_shards}"
            )
        return size


def loop_size(iterations_per_loop: int | str) -> LoopSize:
    """Returns the size of a loop for `TPUConfig.iterations_per_loop`."""
    number = str(iterations_per_loop)
    if number[-1] in _SECS:
        return LoopSize(secs=int(number[:-1]) * _SECS[number[-1]])
    return LoopSize(int(number))


def _kind(mode: str, config: TPUConfig) -> ShardInput:
    """Returns the kind of the shards' input.

    Source: tf.estimator 2.15. In evaluation and prediction, a batch is split even with PER_SHARD_V1.
    """
    training = config.per_host_input_for_training
    is_sliced = config.eval_training_input_configuration == InputPipelineConfig.SLICED
    if mode != ModeKeys.TRAIN and is_sliced:
        return ShardInput.SPLIT
    if training == InputPipelineConfig.BROADCAST:
        return ShardInput.SAME
    if training == InputPipelineConfig.PER_HOST_V2:
        return ShardInput.NEXT
    if training == InputPipelineConfig.PER_SHARD_V1 and mode == ModeKeys.TRAIN:
        return ShardInput.OWN
    return ShardInput.SPLIT


def _is_broadcast(mode: str, config: TPUConfig) -> bool:
    return _kind(mode, config) is ShardInput.SAME
