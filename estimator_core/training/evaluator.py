"""One evaluation with its exports, after a checkpoint in train_and_evaluate."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

from estimator_core.checkpoints.latest import with_newest
from estimator_core.estimator import Estimator
from estimator_core.execution.restored_session import KeptSession
from estimator_core.graphs.program import Program
from estimator_core.logs import logger
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.training.specs import EvalSpec


class Evaluation(NamedTuple):
    """The results of one evaluation."""

    checkpoint_path: str
    metrics: dict[str, Any]
    export_results: list[bytes | None]
    is_final: bool


class Evaluator:
    """Evaluates the newest checkpoint and runs the exporters, once per checkpoint."""

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec):
        self._estimator = estimator
        self._eval_spec = eval_spec
        self._program: Program | None = None
        self.newest: Evaluation | None = None
        self.is_over = False

    def evaluate_and_export(self, is_the_final_export: bool) -> Evaluation | None:
        """Returns the evaluation of the newest checkpoint; None without a checkpoint.

        If training deletes a checkpoint before it is evaluated and exported, the next one is taken. A
        checkpoint is evaluated only once; if training turns out to have ended with it, its exporters run
        once more, as final.
        """
        return with_newest(
            self._estimator.latest_checkpoint,
            lambda path: self._evaluate_and_export(path, is_the_final_export),
        )

    def _evaluate_and_export(self, path: str | None, is_the_final_export: bool) -> Evaluation | None:
        if not path:
            logger.warning(
                "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
            )
            return None
        spec = self._eval_spec
        if self.newest is not None and self.newest.checkpoint_path == path:
            if self.newest.is_final or not is_the_final_export:
                return self.newest
            metrics = self.newest.metrics
        else:
            metrics = self._evaluate(path)
        export_results = [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(self._estimator.model_dir, "export", exporter.name),
                checkpoint_path=path,
                eval_result=metrics,
                is_the_final_export=is_the_final_export,
            )
            for exporter in spec.exporters
        ]
        self.newest = Evaluation(path, metrics, export_results, is_the_final_export)
        return self.newest

    def _evaluate(self, path: str) -> dict[str, Any]:
        estimator, spec = self._estimator, self._eval_spec
        settings: dict[str, Any] = {
            "steps": spec.steps,
            "hooks": spec.hooks,
            "checkpoint_path": path,
            "name": spec.name,
        }
        if not spec.keeps_graph:
            return estimator.evaluate(spec.input_fn, **settings)
        if self._program is None:
            built = estimator.build_program(ModeKeys.EVAL, spec.input_fn)
            self._program = dataclasses.replace(built, kept=KeptSession())
        return estimator.evaluate_program(self._program, **settings)
