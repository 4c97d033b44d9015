"""Runs one task of a training in its pod of an indexed Job: `python -m pipelines.kubeflow.indexed_task FILE`.

A Job is complete when all of its pods have succeeded. But a parameter server does not notice that the
training is over, and a worker that restarts then would wait for servers that no longer exist. Therefore the
chief writes a file into the shared folder when it is done, and the other tasks end with success as soon as
they find it.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipelines import atomic_files
from pipelines.errors import counted
from pipelines.kubeflow.step_environment import set_umask
from pipelines.terminal.ending import end_process

CLUSTER_VARIABLE = "ESTIMATOR_PIPELINES_CLUSTER"
"""Environment variable with the addresses of all tasks, in the order of their indices."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Environment variable in which Kubernetes sets the index of a pod."""

DONE_FILE = "chief_is_done"

_CHIEF = "chief"
_SIGTERM_EXIT_CODE = 143
_LOOK_EVERY_SECS = 2.0


def pod_tf_config(environ: Mapping[str, str]) -> str:
    for name in (CLUSTER_VARIABLE, INDEX_VARIABLE):
        if name not in environ:
            raise LookupError(
                f"The environment has no {name}: this program is for the pods of an indexed Job that "
                "the Trainer's step has submitted."
            )
    cluster, index = json.loads(environ[CLUSTER_VARIABLE]), int(environ[INDEX_VARIABLE])
    tasks = [
        {"type": kind, "index": number}
        for kind, addresses in cluster.items()
        for number in range(len(addresses))
    ]
    if not 0 <= index < len(tasks):
        raise ValueError(
            f"The cluster has {counted(len(tasks), 'task')}; the Job must have as many completions. "
            f"Received: {INDEX_VARIABLE}={index}"
        )
    return json.dumps({"cluster": cluster, "task": tasks[index], "environment": "cloud"})


def run_task(
    file: Path,
    is_chief: bool,
    play: Callable[[], int],
    end: Callable[[int], None],
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Runs a task of the cluster and returns the exit code.

    `file`: file that describes the task; the chief's file is written next to it.
    """
    done = file.with_name(DONE_FILE)
    if done.exists():  # the pod restarted after the training was over
        print("The chief is done: there is nothing left to do.", file=sys.stderr)
        return 0
    if is_chief:
        code = play()
        if code == 0:
            done.touch()
        return code

    def end_with_the_chief() -> None:
        while not done.exists():
            sleep(_LOOK_EVERY_SECS)
        print("The chief is done: this task ends.", file=sys.stderr)
        end(0)

    threading.Thread(target=end_with_the_chief, daemon=True).start()
    code = play()
    # A worker may lose its parameter servers at the end, and fail.
    return 0 if done.exists() else code


def play(file: Path) -> int:
    """Runs the task of the cluster that TF_CONFIG gives to this process; returns the exit code.

    After an error of the user's code, the task is not started again: the exit code is 1. A task that was
    asked to end, as when Kubernetes drains a node, is started on another node: the exit code is 143.
    """
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from components.trainer.cluster_task import ClusterTask
    from components.trainer.task_failure import TaskFailedError
    from pipelines.steps.causes import describe_cause

    task = atomic_files.read_model(file, ClusterTask)
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


def main(arguments: Sequence[str]) -> int:
    """Runs the task of this pod's index; returns the exit code."""
    config = pod_tf_config(os.environ)
    os.environ["TF_CONFIG"] = config
    (file,) = arguments
    is_chief = json.loads(config)["task"]["type"] == _CHIEF
    return run_task(Path(file), is_chief, lambda: play(Path(file)), end_process)


if __name__ == "__main__":
    set_umask(os.environ)
    end_process(main(sys.argv[1:]))
