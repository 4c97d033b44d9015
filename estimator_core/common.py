"""The names that `estimator_core` and `estimator_core.v1` have in common."""

from estimator_core import experimental as experimental
from estimator_core import export as export
from estimator_core import inputs as inputs
from estimator_core import tpu as tpu
from estimator_core.canned import BoostedTreesClassifier as BoostedTreesClassifier
from estimator_core.canned import BoostedTreesEstimator as BoostedTreesEstimator
from estimator_core.canned import BoostedTreesRegressor as BoostedTreesRegressor
from estimator_core.canned.parse_example_spec import (
    classifier_parse_example_spec as classifier_parse_example_spec,
)
from estimator_core.canned.parse_example_spec import (
    regressor_parse_example_spec as regressor_parse_example_spec,
)
from estimator_core.checkpoints.warm_start_settings import VocabInfo as VocabInfo
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings as WarmStartSettings
from estimator_core.estimator import Estimator as Estimator
from estimator_core.export.best_exporter import BestExporter as BestExporter
from estimator_core.export.exporters import Exporter as Exporter
from estimator_core.export.exporters import FinalExporter as FinalExporter
from estimator_core.export.exporters import LatestExporter as LatestExporter
from estimator_core.heads import BinaryClassHead as BinaryClassHead
from estimator_core.heads import Head as Head
from estimator_core.heads import LogisticRegressionHead as LogisticRegressionHead
from estimator_core.heads import MultiClassHead as MultiClassHead
from estimator_core.heads import MultiHead as MultiHead
from estimator_core.heads import MultiLabelHead as MultiLabelHead
from estimator_core.heads import PoissonRegressionHead as PoissonRegressionHead
from estimator_core.heads import RegressionHead as RegressionHead
from estimator_core.hooks import CheckpointSaverHook as CheckpointSaverHook
from estimator_core.hooks import CheckpointSaverListener as CheckpointSaverListener
from estimator_core.hooks import FeedFnHook as FeedFnHook
from estimator_core.hooks import FinalOpsHook as FinalOpsHook
from estimator_core.hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
from estimator_core.hooks import LoggingTensorHook as LoggingTensorHook
from estimator_core.hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from estimator_core.hooks import NanTensorHook as NanTensorHook
from estimator_core.hooks import ProfilerHook as ProfilerHook
from estimator_core.hooks import SecondOrStepTimer as SecondOrStepTimer
from estimator_core.hooks import SessionRunArgs as SessionRunArgs
from estimator_core.hooks import SessionRunContext as SessionRunContext
from estimator_core.hooks import SessionRunHook as SessionRunHook
from estimator_core.hooks import SessionRunValues as SessionRunValues
from estimator_core.hooks import StepCounterHook as StepCounterHook
from estimator_core.hooks import StopAtStepHook as StopAtStepHook
from estimator_core.hooks import SummarySaverHook as SummarySaverHook
from estimator_core.run_config import RunConfig as RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec as EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys as ModeKeys
from estimator_core.training.add_metrics import add_metrics as add_metrics
from estimator_core.training.specs import EvalSpec as EvalSpec
from estimator_core.training.specs import TrainSpec as TrainSpec
from estimator_core.training.train_and_evaluate import train_and_evaluate as train_and_evaluate
