"""What runs in each pod of a TFJob: `python -m pipelines.kubeflow.training_task FILE`."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

_SIGTERM_EXIT_CODE = 143


def main(arguments: Sequence[str]) -> int:
    """Plays the part in the cluster that TF_CONFIG gives to this process; returns the exit code.

    What the user's code raises is no reason to start the task again: the exit code is 1. A task that
    was asked to end, as Kubernetes does when it empties a node, is started elsewhere: the code is 143.

    Args:
      arguments: The file that describes the task.
    """
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from components.trainer.cluster_task import ClusterTask
    from components.trainer.task_failure import TaskFailedError
    from pipelines.runners.causes import describe_cause

    (file,) = arguments
    task = ClusterTask(**json.loads(Path(file).read_text(encoding="utf-8")))
    try:
        task()
    except TaskFailedError as failure:
        error = failure.error()
        if isinstance(error, SystemExit) and error.code == _SIGTERM_EXIT_CODE:
            print("SIGTERM has ended this task.", file=sys.stderr, flush=True)
            return _SIGTERM_EXIT_CODE
        print(failure.text, file=sys.stderr)
        print(describe_cause(error), file=sys.stderr, flush=True)
        return 1
    return 0


def end(code: int) -> NoReturn:
    """Ends this process, whatever threads TensorFlow's server has: they must not keep a task alive."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    end(main(sys.argv[1:]))
