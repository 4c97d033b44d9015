"""Builders of logit functions, which turn features into logits for any head."""

from estimator_core.logits.baseline import baseline_logit_fn_builder as baseline_logit_fn_builder
from estimator_core.logits.dnn import add_activation_summary as add_activation_summary
from estimator_core.logits.dnn import dnn_logit_fn_builder as dnn_logit_fn_builder
from estimator_core.logits.dnn import with_activation_summary as with_activation_summary
from estimator_core.logits.linear import linear_logit_fn_builder as linear_logit_fn_builder
