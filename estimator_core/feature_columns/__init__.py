"""Conversion of `tf.feature_column` columns to tensors and variables, in a graph."""

from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.feature_columns.linear_model import LinearModel, linear_model
from estimator_core.feature_columns.sequence_input_layer import sequence_input_layer
from estimator_core.feature_columns.state_manager import StateManager
from estimator_core.feature_columns.transformation_cache import FeatureTransformationCache

__all__ = [
    "FeatureTransformationCache",
    "LinearModel",
    "StateManager",
    "input_layer",
    "linear_model",
    "sequence_input_layer",
]
