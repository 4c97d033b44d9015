"""`tf.compat.v1.estimator`: the names of `estimator_core` with the defaults of TensorFlow 1.

Only the canned Estimators, except boosted trees, differ from those of `estimator_core`: they minimize the
sum of the losses of a batch with the optimizers of `tf.compat.v1.train`, split large variables over
parameter servers, and name variables as in checkpoints of TensorFlow 1.

from estimator_core import v1 as estimator

classifier = estimator.DNNClassifier(feature_columns=columns, hidden_units=[64, 32])
"""

from estimator_core import experimental, export, inputs, tpu
from estimator_core.canned import (
    BoostedTreesClassifier,
    BoostedTreesEstimator,
    BoostedTreesRegressor,
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
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.training.add_metrics import add_metrics
from estimator_core.training.specs import EvalSpec, TrainSpec
from estimator_core.training.train_and_evaluate import train_and_evaluate
from estimator_core.v1.baseline import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
)
from estimator_core.v1.dnn import DNNClassifier, DNNEstimator, DNNRegressor
from estimator_core.v1.dnn_linear_combined import (
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
)
from estimator_core.v1.linear import LinearClassifier, LinearEstimator, LinearRegressor
from estimator_core.v1.model_to_estimator import model_to_estimator

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
    "model_to_estimator",
    "regressor_parse_example_spec",
    "tpu",
    "train_and_evaluate",
]
