"""Conversion of `tf.feature_column` columns to tensors and variables, in a graph."""

from estimator_core.feature_columns.input_layer import input_layer as input_layer
from estimator_core.feature_columns.linear_model import LinearModel as LinearModel
from estimator_core.feature_columns.linear_model import linear_model as linear_model
from estimator_core.feature_columns.sequence_input_layer import sequence_input_layer as sequence_input_layer
from estimator_core.feature_columns.state_manager import StateManager as StateManager
from estimator_core.feature_columns.transformation_cache import (
    FeatureTransformationCache as FeatureTransformationCache,
)
