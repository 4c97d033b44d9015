"""Heads turn logits into predictions, loss, metrics and signatures."""

from estimator_core.heads.base import Head
from estimator_core.heads.binary_class import BinaryClassHead
from estimator_core.heads.logistic_regression import LogisticRegressionHead
from estimator_core.heads.multi_class import MultiClassHead
from estimator_core.heads.multi_head import MultiHead
from estimator_core.heads.multi_label import MultiLabelHead
from estimator_core.heads.poisson_regression import PoissonRegressionHead
from estimator_core.heads.regression import RegressionHead
from estimator_core.heads.sequential import SequentialHeadWrapper

__all__ = [
    "BinaryClassHead",
    "Head",
    "LogisticRegressionHead",
    "MultiClassHead",
    "MultiHead",
    "MultiLabelHead",
    "PoissonRegressionHead",
    "RegressionHead",
    "SequentialHeadWrapper",
]
