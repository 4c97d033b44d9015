"""Checks of a TPUEstimator's settings for `use_tpu=True`."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.tpu.experimental.embedding_config_spec import EmbeddingConfigSpec
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.tpu_config import InputPipelineConfig, check_positive_int


def check_settings(
    config: RunConfig,
    batch_sizes: Mapping[str, int | None],
    embedding_config_spec: EmbeddingConfigSpec | None,
) -> None:
    """Checks the arguments of a TPUEstimator for `use_tpu=True`.

    `batch_sizes`: dict of mode to the examples of a batch on all shards together; None if not given.
    """
    for name in ("train_distribute", "eval_distribute", "experimental_distribute"):
        if getattr(config, name) is not None:
            raise ValueError(
                f"use_tpu=True already divides batches among shards: leave {name} out of tpu.RunConfig, or "
                f"train with use_tpu=False. Received: {name}={getattr(config, name)!r}"
            )
    if batch_sizes[ModeKeys.TRAIN] is None:
        raise ValueError("train_batch_size is needed with use_tpu=True. Received: train_batch_size=None")
    names = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}
    for mode, batch_size in batch_sizes.items():
        if batch_size is not None:
            check_positive_int(batch_size, f"{names[mode]}_batch_size")
    tpu_config = config.tpu_config
    if (
        tpu_config.num_cores_per_replica
        and tpu_config.per_host_input_for_training == InputPipelineConfig.PER_SHARD_V1
    ):
        raise ValueError(
            "A model that spans several cores (num_cores_per_replica) only supports per host input: "
            "set TPUConfig's per_host_input_for_training. Received: PER_SHARD_V1"
        )
    per_host = (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2)
    if embedding_config_spec and tpu_config.per_host_input_for_training not in per_host:
        raise ValueError(
            "With embedding_config_spec, TPUConfig's per_host_input_for_training must be PER_HOST_V1 or "
            f"PER_HOST_V2. Received: {tpu_config.per_host_input_for_training}"
        )
