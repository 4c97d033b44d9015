"""How a TPUEstimator's batches are divided into shards, mode by mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from estimator_core.execution.base import LoopSize
from estimator_core.execution.sharded import Sharding
from estimator_core.execution.shards.shard_inputs import ShardInput
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.tpu.tpu_config import InputPipelineConfig, TPUConfig

CORES_OF_A_BOARD = 8
"""Cores of the shards of a TPUEstimator that does not say how many: those of a TPU v2 or v3 board."""

_SECS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_NAMES = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}


@dataclasses.dataclass(frozen=True)
class ShardedModes:
    """Which modes of a TPUEstimator run on shards, and with what batches.

    Attributes:
        modes: Those that do.
        batch_sizes: Mode to the examples of a batch on all shards together; None where it is not given.
        batch_axis: As for `TPUEstimator`.
        adds_up_gradients: Whether the gradients of any optimizer are averaged over the shards.
        takes_sparse: Whether there may be sparse features.
    """

    modes: frozenset[str]
    batch_sizes: Mapping[str, int | None]
    batch_axis: tuple[int, ...] | None = None
    adds_up_gradients: bool = False
    takes_sparse: bool = False

    def num_shards(self, config: TPUConfig) -> int:
        """Returns the copies of the model.

        Raises:
            ValueError: A copy takes more cores than there are.
        """
        cores = config.num_cores_per_replica or 1
        if cores > CORES_OF_A_BOARD and not config.num_shards:
            raise ValueError(
                f"A board has {CORES_OF_A_BOARD} cores: with num_cores_per_replica above that, say by "
                "TPUConfig(num_shards=...) how many copies of the model there are. Received: "
                f"num_cores_per_replica={cores}, num_shards=None"
            )
        if (
            cores > CORES_OF_A_BOARD
            and config.per_host_input_for_training != InputPipelineConfig.PER_HOST_V2
        ):
            raise ValueError(
                f"A host has {CORES_OF_A_BOARD} cores: a copy of the model that takes more is for "
                "per_host_input_for_training=InputPipelineConfig.PER_HOST_V2 alone. Received: "
                f"num_cores_per_replica={cores}, "
                f"per_host_input_for_training={config.per_host_input_for_training}"
            )
        return config.num_shards or CORES_OF_A_BOARD // cores

    def input_batch_size(self, mode: str, config: TPUConfig) -> int:
        """Returns the "batch_size" that input_fn finds in its params.

        Raises:
            ValueError: It is not given, or does not go around the shards.
        """
        size = self._checked_size(mode, config)
        kind = _kind(mode, config)
        is_of_a_shard = kind in (ShardInput.NEXT, ShardInput.OWN)
        return size // self.num_shards(config) if is_of_a_shard else size

    def model_batch_size(self, mode: str, config: TPUConfig) -> int:
        """Returns the "batch_size" that model_fn finds in its params: that of a shard.

        Raises:
            ValueError: It is not given, or does not go around the shards.
        """
        size = self._checked_size(mode, config)
        return size if _kind(mode, config) is ShardInput.SAME else size // self.num_shards(config)

    def sharding(self, mode: str, config: TPUConfig) -> Sharding | None:
        """Returns how the mode is divided; None when it is not.

        Raises:
            ValueError: Its batch size is not given, or does not go around the shards.
            TypeError: `batch_axis` is set for prediction.
        """
        if mode not in self.modes:
            return None
        kind = _kind(mode, config)
        if mode == ModeKeys.PREDICT and self.batch_axis is not None and kind is ShardInput.SPLIT:
            raise TypeError(
                "For mode PREDICT, batch_axis is not supported: batches are split along the first "
                f"dimension. Received: batch_axis={self.batch_axis}"
            )
        # As 2.15 has it, only a batch of PER_HOST_V1 is split along other dimensions.
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
    """Returns how long a loop is that `TPUConfig.iterations_per_loop` asks for."""
    text = str(iterations_per_loop)
    if text[-1] in _SECS:
        return LoopSize(secs=int(text[:-1]) * _SECS[text[-1]])
    return LoopSize(int(text))


def _kind(mode: str, config: TPUConfig) -> ShardInput:
    """Returns how shards get their batches.

    Source: tf.estimator 2.15. Evaluation and prediction know no PER_SHARD_V1: a batch is split.
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
