"""`tf.estimator.experimental`."""

from estimator_core.experimental.call_logit_fn import call_logit_fn
from estimator_core.hooks.early_stopping import (
    make_early_stopping_hook,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from estimator_core.hooks.stop_at_checkpoint_step import make_stop_at_checkpoint_step_hook

__all__ = [
    "call_logit_fn",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]
