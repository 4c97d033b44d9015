"""`tf.compat.v1.estimator`: the names of `estimator_core` with the defaults of TensorFlow 1.

Only the canned Estimators, except boosted trees, differ from those of `estimator_core`: they minimize the
sum of the losses of a batch with the optimizers of `tf.compat.v1.train`, split large variables over
parameter servers, and name variables as in checkpoints of TensorFlow 1.

from estimator_core import v1 as estimator

classifier = estimator.DNNClassifier(feature_columns=columns, hidden_units=[64, 32])
"""

from estimator_core import reexports
from estimator_core.common import *  # noqa: F403
from estimator_core.v1.canned import BaselineClassifier as BaselineClassifier
from estimator_core.v1.canned import BaselineEstimator as BaselineEstimator
from estimator_core.v1.canned import BaselineRegressor as BaselineRegressor
from estimator_core.v1.canned import DNNClassifier as DNNClassifier
from estimator_core.v1.canned import DNNEstimator as DNNEstimator
from estimator_core.v1.canned import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from estimator_core.v1.canned import DNNLinearCombinedEstimator as DNNLinearCombinedEstimator
from estimator_core.v1.canned import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from estimator_core.v1.canned import DNNRegressor as DNNRegressor
from estimator_core.v1.canned import LinearClassifier as LinearClassifier
from estimator_core.v1.canned import LinearEstimator as LinearEstimator
from estimator_core.v1.canned import LinearRegressor as LinearRegressor
from estimator_core.v1.model_to_estimator import model_to_estimator as model_to_estimator

__all__ = reexports.names(globals(), modules=["experimental", "export", "inputs", "tpu"])
