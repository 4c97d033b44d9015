"""Reporting the share of a training's time that was spent waiting for input."""

from __future__ import annotations

from estimator_core import summaries
from estimator_core.graphs.program import Program
from estimator_core.logs import logger

_LEAST_SECS = 1.0  # the share of a shorter time says little
_LEAST_SECS_TO_LOG = 10.0  # a shorter training is not worth a line
_MUCH = 0.3
_ADVICE = (
    "; its input takes longer than its steps: batch before map, to parse whole batches; cache() data that "
    "fits in memory; num_parallel_calls=tf.data.AUTOTUNE for map; prefetch(tf.data.AUTOTUNE) last"
)


def report(program: Program, secs: float, global_step: int | None) -> None:
    """Logs the share of the time that steps waited for their batches, and writes it for TensorBoard.

    Only the steps in a loop of the graph are measured, not those with hooks.
    """
    waited = program.step.waited_secs() if program.step.waited_secs else None
    if waited is None or secs < _LEAST_SECS:
        return
    share = min(waited / secs, 1.0)
    if secs >= _LEAST_SECS_TO_LOG:
        logger.info(
            "Training waited for its input %.0f %% of the time%s.",
            100 * share,
            _ADVICE if share >= _MUCH else "",
        )
    config = program.config
    if config.save_summary_steps and config.model_dir and program.execution.is_chief:
        summaries.write_input_wait(config.model_dir, share, global_step or 0)
