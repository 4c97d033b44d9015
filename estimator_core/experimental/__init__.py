"""`tf.estimator.experimental`, and the parts to build an Estimator like the canned ones."""

from estimator_core import reexports
from estimator_core.boosted_trees.early_stopping import TreesEarlyStopping as TreesEarlyStopping
from estimator_core.canned.compose import ModelPart as ModelPart
from estimator_core.canned.compose import compose as compose
from estimator_core.canned.kmeans import KMeans as KMeans
from estimator_core.canned.rnn import RNNClassifier as RNNClassifier
from estimator_core.canned.rnn import RNNEstimator as RNNEstimator
from estimator_core.experimental.in_memory_evaluator_hook import (
    InMemoryEvaluatorHook as InMemoryEvaluatorHook,
)
from estimator_core.experimental.local_cluster import LocalClusterError as LocalClusterError
from estimator_core.experimental.local_cluster import LocalClusterResult as LocalClusterResult
from estimator_core.experimental.local_cluster import launch_local_cluster as launch_local_cluster
from estimator_core.experimental.logit_fn_builders import call_logit_fn as call_logit_fn
from estimator_core.experimental.logit_fn_builders import dnn_logit_fn_builder as dnn_logit_fn_builder
from estimator_core.experimental.logit_fn_builders import linear_logit_fn_builder as linear_logit_fn_builder
from estimator_core.experimental.supervised_input_receiver import (
    build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn,
)
from estimator_core.experimental.warm_start_report import warm_start_report as warm_start_report
from estimator_core.feature_columns.input_layer import input_layer as input_layer
from estimator_core.heads.sequential import SequentialHeadWrapper as SequentialHeadWrapper
from estimator_core.hooks.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from estimator_core.hooks.early_stopping import stop_if_higher_hook as stop_if_higher_hook
from estimator_core.hooks.early_stopping import stop_if_lower_hook as stop_if_lower_hook
from estimator_core.hooks.early_stopping import stop_if_no_decrease_hook as stop_if_no_decrease_hook
from estimator_core.hooks.early_stopping import stop_if_no_increase_hook as stop_if_no_increase_hook
from estimator_core.hooks.stop_at_checkpoint_step import (
    make_stop_at_checkpoint_step_hook as make_stop_at_checkpoint_step_hook,
)
from estimator_core.sdca import LinearSDCA as LinearSDCA

__all__ = reexports.names(globals())
