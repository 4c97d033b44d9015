"""`tf.compat.v1.estimator.tpu`: Estimators written for TPUs; they run on virtual shards, or as one copy."""

from estimator_core import reexports, tf1
from estimator_core.tpu import experimental as experimental
from estimator_core.tpu.check.check import check_for_tpu as check_for_tpu
from estimator_core.tpu.run_config import RunConfig as RunConfig
from estimator_core.tpu.to_tpu_estimator import to_tpu_estimator as to_tpu_estimator
from estimator_core.tpu.tpu_config import InputPipelineConfig as InputPipelineConfig
from estimator_core.tpu.tpu_config import TPUConfig as TPUConfig
from estimator_core.tpu.tpu_estimator import TPUEstimator as TPUEstimator
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec as TPUEstimatorSpec

CrossShardOptimizer = tf1.tpu.CrossShardOptimizer
cross_replica_sum = tf1.tpu.cross_replica_sum

__all__ = reexports.names(globals(), modules=["experimental"])
