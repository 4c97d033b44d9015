"""`tf.estimator.experimental`, and the parts to build an Estimator like the canned ones."""

from estimator_core.boosted_trees.early_stopping import TreesEarlyStopping
from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.kmeans import KMeans
from estimator_core.canned.rnn import RNNClassifier, RNNEstimator
from estimator_core.experimental.call_logit_fn import call_logit_fn
from estimator_core.experimental.in_memory_evaluator_hook import InMemoryEvaluatorHook
from estimator_core.experimental.local_cluster import (
    LocalClusterError,
    LocalClusterResult,
    launch_local_cluster,
)
from estimator_core.experimental.logit_fn_builders import (
    dnn_logit_fn_builder,
    linear_logit_fn_builder,
)
from estimator_core.experimental.supervised_input_receiver import (
    build_raw_supervised_input_receiver_fn,
)
from estimator_core.experimental.warm_start_report import warm_start_report
from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.heads.sequential import SequentialHeadWrapper
from estimator_core.hooks.early_stopping import (
    make_early_stopping_hook,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from estimator_core.hooks.stop_at_checkpoint_step import make_stop_at_checkpoint_step_hook
from estimator_core.sdca import LinearSDCA

__all__ = [
    "InMemoryEvaluatorHook",
    "KMeans",
    "LinearSDCA",
    "LocalClusterError",
    "LocalClusterResult",
    "ModelPart",
    "RNNClassifier",
    "RNNEstimator",
    "SequentialHeadWrapper",
    "TreesEarlyStopping",
    "build_raw_supervised_input_receiver_fn",
    "call_logit_fn",
    "compose",
    "dnn_logit_fn_builder",
    "input_layer",
    "launch_local_cluster",
    "linear_logit_fn_builder",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
    "warm_start_report",
]
