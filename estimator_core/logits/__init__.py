"""Builders of logit functions, which turn features into logits for any head."""

from estimator_core.logits.activation_summary import add_activation_summary, with_activation_summary
from estimator_core.logits.baseline import baseline_logit_fn_builder
from estimator_core.logits.dnn import dnn_logit_fn_builder
from estimator_core.logits.linear import linear_logit_fn_builder

__all__ = [
    "add_activation_summary",
    "baseline_logit_fn_builder",
    "dnn_logit_fn_builder",
    "linear_logit_fn_builder",
    "with_activation_summary",
]
