"""`tf.compat.v1.estimator.tpu`: Estimators written for TPUs; they run on virtual shards, or as one copy."""

from estimator_core import tf1
from estimator_core.tpu import experimental
from estimator_core.tpu.check.check import check_for_tpu
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.to_tpu_estimator import to_tpu_estimator
from estimator_core.tpu.tpu_config import InputPipelineConfig, TPUConfig
from estimator_core.tpu.tpu_estimator import TPUEstimator
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec

CrossShardOptimizer = tf1.tpu.CrossShardOptimizer
cross_replica_sum = tf1.tpu.cross_replica_sum

__all__ = [
    "CrossShardOptimizer",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "check_for_tpu",
    "cross_replica_sum",
    "experimental",
    "to_tpu_estimator",
]
