"""Experimental names of `tf.compat.v1.estimator.tpu`."""

from estimator_core.tpu.experimental.embedding_config_spec import EmbeddingConfigSpec

__all__ = ["EmbeddingConfigSpec"]
