"""Ready-made Estimators: a head on top of logits, and optimizers."""

from estimator_core.canned.baseline import BaselineClassifier as BaselineClassifier
from estimator_core.canned.baseline import BaselineEstimator as BaselineEstimator
from estimator_core.canned.baseline import BaselineRegressor as BaselineRegressor
from estimator_core.canned.boosted_trees import BoostedTreesClassifier as BoostedTreesClassifier
from estimator_core.canned.boosted_trees import BoostedTreesEstimator as BoostedTreesEstimator
from estimator_core.canned.boosted_trees import BoostedTreesRegressor as BoostedTreesRegressor
from estimator_core.canned.compose import ModelPart as ModelPart
from estimator_core.canned.compose import compose as compose
from estimator_core.canned.dnn import DNNClassifier as DNNClassifier
from estimator_core.canned.dnn import DNNEstimator as DNNEstimator
from estimator_core.canned.dnn import DNNRegressor as DNNRegressor
from estimator_core.canned.dnn_linear_combined import (
    DNNLinearCombinedClassifier as DNNLinearCombinedClassifier,
)
from estimator_core.canned.dnn_linear_combined import DNNLinearCombinedEstimator as DNNLinearCombinedEstimator
from estimator_core.canned.dnn_linear_combined import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from estimator_core.canned.kmeans import KMeans as KMeans
from estimator_core.canned.linear import LinearClassifier as LinearClassifier
from estimator_core.canned.linear import LinearEstimator as LinearEstimator
from estimator_core.canned.linear import LinearRegressor as LinearRegressor
from estimator_core.canned.rnn import RNNClassifier as RNNClassifier
from estimator_core.canned.rnn import RNNEstimator as RNNEstimator
