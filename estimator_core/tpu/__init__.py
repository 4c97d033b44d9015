"""`tf.compat.v1.estimator.tpu`: Estimators written for TPUs; here they run with use_tpu=False."""

from estimator_core.tpu import experimental
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.tpu_config import InputPipelineConfig, TPUConfig
from estimator_core.tpu.tpu_estimator import TPUEstimator
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec

__all__ = [
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "experimental",
]
