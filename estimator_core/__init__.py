"""The Estimator API on today's TensorFlow: the names of `tf.estimator`, in one import.

import estimator_core as estimator

classifier = estimator.DNNClassifier(feature_columns=columns, hidden_units=[64, 32])
classifier.train(input_fn, max_steps=1000)
"""

from estimator_core import experimental, export, inputs, tpu, v1
from estimator_core.canned import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
    BoostedTreesClassifier,
    BoostedTreesEstimator,
    BoostedTreesRegressor,
    DNNClassifier,
    DNNEstimator,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearEstimator,
    LinearRegressor,
)
from estimator_core.canned.parse_example_spec import (
    classifier_parse_example_spec,
    regressor_parse_example_spec,
)
from estimator_core.checkpoints.warm_start_settings import VocabInfo, WarmStartSettings
from estimator_core.estimator import Estimator
from estimator_core.export.best_exporter import BestExporter
from estimator_core.export.exporters import Exporter, FinalExporter, LatestExporter
from estimator_core.heads import (
    BinaryClassHead,
    Head,
    LogisticRegressionHead,
    MultiClassHead,
    MultiHead,
    MultiLabelHead,
    PoissonRegressionHead,
    RegressionHead,
)
from estimator_core.hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    ProfilerHook,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from estimator_core.installation.install import install
from estimator_core.keras_models.model_to_estimator import model_to_estimator
from estimator_core.keras_models.to_keras import to_keras
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.training.add_metrics import add_metrics
from estimator_core.training.specs import EvalSpec, TrainSpec
from estimator_core.training.train_and_evaluate import train_and_evaluate

__all__ = [
    "BaselineClassifier",
    "BaselineEstimator",
    "BaselineRegressor",
    "BestExporter",
    "BinaryClassHead",
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "DNNClassifier",
    "DNNEstimator",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FeedFnHook",
    "FinalExporter",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "Head",
    "LatestExporter",
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "LoggingTensorHook",
    "LogisticRegressionHead",
    "ModeKeys",
    "MultiClassHead",
    "MultiHead",
    "MultiLabelHead",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "PoissonRegressionHead",
    "ProfilerHook",
    "RegressionHead",
    "RunConfig",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "VocabInfo",
    "WarmStartSettings",
    "add_metrics",
    "classifier_parse_example_spec",
    "experimental",
    "export",
    "inputs",
    "install",
    "model_to_estimator",
    "regressor_parse_example_spec",
    "to_keras",
    "tpu",
    "train_and_evaluate",
    "v1",
]
