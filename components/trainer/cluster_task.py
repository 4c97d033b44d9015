"""What each process of a cluster does: it calls the user's trainer_fn, and plays its part.

A new process imports this module before its output goes to a log of its own, so that imports which
take long or may fail happen in the task.
"""

import dataclasses
from typing import Any

from components.trainer.task_failure import TaskFailedError


@dataclasses.dataclass(frozen=True)
class ClusterTask:
    """A function without arguments that can be pickled, for `launch_local_cluster`.

    Attributes:
        inputs: The Trainer's input artifacts, as JSON.
        exec_properties: Its execution properties.
        directories: `serving_model_dir`, `eval_model_dir` and `model_run_dir` of `make_fn_args`.
        model_dir: Where the Estimator of the process that starts the cluster trains.
    """

    inputs: str
    exec_properties: dict[str, Any]
    directories: dict[str, str]
    model_dir: str

    def __call__(self) -> None:
        """Trains, serves variables or evaluates, as TF_CONFIG says.

        Raises:
            TaskFailedError: What the user's code raised.
        """
        try:
            self._run()
        except BaseException as error:  # SystemExit, too: to the run it is an error like others
            raise TaskFailedError.of(error) from None

    def _run(self) -> None:
        from tfx.utils import json_utils

        import estimator_core
        from components.trainer import fn_args, task_logs, training
        from components.trainer.user_function import UserFunction

        task_logs.write_to_stderr()
        user_function = UserFunction.of_properties(self.exec_properties)
        args = fn_args.make_fn_args(
            json_utils.loads(self.inputs), self.exec_properties, **self.directories
        )
        spec = training.call_trainer_fn(user_function.function, args)
        model_dir = spec.estimator.model_dir
        if model_dir != self.model_dir:
            raise ValueError(
                "All tasks of a cluster need the same model_dir: use "
                "trainer_fn_args.serving_model_dir. trainer_fn's Estimator trains in "
                f"{model_dir} here, and in {self.model_dir} in the process of the Trainer."
            )
        estimator_core.train_and_evaluate(spec.estimator, spec.train_spec, spec.eval_spec)
