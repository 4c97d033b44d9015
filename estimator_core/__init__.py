"""The Estimator API on today's TensorFlow: the names of `tf.estimator`, in one import.

import estimator_core as estimator

classifier = estimator.DNNClassifier(feature_columns=columns, hidden_units=[64, 32])
classifier.train(input_fn, max_steps=1000)
"""

from estimator_core import reexports
from estimator_core import v1 as v1
from estimator_core.canned import BaselineClassifier as BaselineClassifier
from estimator_core.canned import BaselineEstimator as BaselineEstimator
from estimator_core.canned import BaselineRegressor as BaselineRegressor
from estimator_core.canned import DNNClassifier as DNNClassifier
from estimator_core.canned import DNNEstimator as DNNEstimator
from estimator_core.canned import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from estimator_core.canned import DNNLinearCombinedEstimator as DNNLinearCombinedEstimator
from estimator_core.canned import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from estimator_core.canned import DNNRegressor as DNNRegressor
from estimator_core.canned import LinearClassifier as LinearClassifier
from estimator_core.canned import LinearEstimator as LinearEstimator
from estimator_core.canned import LinearRegressor as LinearRegressor
from estimator_core.common import *  # noqa: F403
from estimator_core.installation.install import install as install
from estimator_core.keras_models.model_to_estimator import model_to_estimator as model_to_estimator
from estimator_core.keras_models.to_keras import to_keras as to_keras

__all__ = reexports.names(globals(), modules=["experimental", "export", "inputs", "tpu", "v1"])
