"""The work of each process in a cluster: it calls the user's trainer_fn and runs its own task.

A new process imports this module before its output is redirected to its own log, so that imports which
take long or may fail happen in the task.
"""

import dataclasses
from typing import Any

from components.trainer.task_failure import TaskFailedError


@dataclasses.dataclass(frozen=True)
class ClusterTask:
    """A function without arguments that can be pickled, for `launch_local_cluster`."""

    inputs: str  # The Trainer's input artifacts, as JSON
    exec_properties: dict[str, Any]
    directories: dict[str, str]  # `serving_model_dir`, `eval_model_dir` and `model_run_dir` of `make_fn_args`
    model_dir: str  # The Estimator's model_dir in the process that starts the cluster

    def __call__(self) -> None:
        """Trains, serves variables or evaluates, as TF_CONFIG says."""
        try:
            self._run()
        except BaseException as error:  # also SystemExit, which fails the run like any other error
            raise TaskFailedError.from_error(error) from None

    def _run(self) -> None:
        from tfx.utils import json_utils

        import estimator_core
        from components.trainer import fn_args, task_logs, training
        from components.trainer.user_function import UserFunction

        task_logs.write_to_stderr()
        user_function = UserFunction.from_properties(self.exec_properties)
        args = fn_args.make_fn_args(json_utils.loads(self.inputs), self.exec_properties, **self.directories)
        spec = training.call_trainer_fn(user_function.function, args)
        model_dir = spec.estimator.model_dir
        if model_dir != self.model_dir:
            raise ValueError(
                "All tasks of a cluster need the same model_dir: use "
                "trainer_fn_args.serving_model_dir. trainer_fn's Estimator trains in "
                f"{model_dir} here, and in {self.model_dir} in the process of the Trainer."
            )
        estimator_core.train_and_evaluate(spec.estimator, spec.train_spec, spec.eval_spec)
