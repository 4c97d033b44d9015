"""Heads: what turns logits into predictions, loss, metrics and signatures."""

from estimator_core.heads.base import Head
from estimator_core.heads.binary_class import BinaryClassHead
from estimator_core.heads.multi_class import MultiClassHead
from estimator_core.heads.regression import RegressionHead

__all__ = ["BinaryClassHead", "Head", "MultiClassHead", "RegressionHead"]
