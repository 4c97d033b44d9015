"""Heads turn logits into predictions, loss, metrics and signatures."""

from estimator_core.heads.base import Head as Head
from estimator_core.heads.binary_class import BinaryClassHead as BinaryClassHead
from estimator_core.heads.logistic_regression import LogisticRegressionHead as LogisticRegressionHead
from estimator_core.heads.multi_class import MultiClassHead as MultiClassHead
from estimator_core.heads.multi_head import MultiHead as MultiHead
from estimator_core.heads.multi_label import MultiLabelHead as MultiLabelHead
from estimator_core.heads.poisson_regression import PoissonRegressionHead as PoissonRegressionHead
from estimator_core.heads.regression import RegressionHead as RegressionHead
from estimator_core.heads.sequential import SequentialHeadWrapper as SequentialHeadWrapper
