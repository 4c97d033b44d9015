"""Ready-made Estimators: a head on top of logits, and optimizers."""

from estimator_core.canned.baseline import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
)
from estimator_core.canned.boosted_trees import (
    BoostedTreesClassifier,
    BoostedTreesEstimator,
    BoostedTreesRegressor,
)
from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.dnn import DNNClassifier, DNNEstimator, DNNRegressor
from estimator_core.canned.dnn_linear_combined import (
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
)
from estimator_core.canned.kmeans import KMeans
from estimator_core.canned.linear import LinearClassifier, LinearEstimator, LinearRegressor
from estimator_core.canned.rnn import RNNClassifier, RNNEstimator

__all__ = [
    "BaselineClassifier",
    "BaselineEstimator",
    "BaselineRegressor",
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
    "DNNClassifier",
    "DNNEstimator",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "KMeans",
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "ModelPart",
    "RNNClassifier",
    "RNNEstimator",
    "compose",
]
