"""Runs the tasks of a pipeline: each when those that it depends on have ended, some at a time."""

import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from components.interruption import interruption
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.dag import PLAN, RECORD
from pipelines.kubeflow.local_execution.driver import (
    CompiledPipeline,
    TaskCache,
    Values,
    cache_key,
    resolve_inputs,
)
from pipelines.kubeflow.local_execution.launcher import ContainerFailedError, Launcher
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.terminal.progress import Progress

_ALWAYS = "ALL_UPSTREAM_TASKS_COMPLETED"


class TaskDisplay:
    """Shows the tasks, from any thread, and the run's notes, which Plan and Record write."""

    def __init__(self, progress: Progress, root: Root, run_id: str):
        self._progress = progress
        self._root = root
        self._run_id = run_id
        self._num_shown_notes = 0

    def task_started(self, name: str) -> None:
        self._progress.component_started(name)

    def task_finished(self, name: str, cached: bool, elapsed_secs: float) -> None:
        """Shows that a task has ended, and what it has noted, such as the spans."""
        self._progress.component_finished(name, cached, elapsed_secs)
        if name in (PLAN, RECORD) and (record := kubeflow_record(self._root, self._run_id)):
            for note in record.notes[self._num_shown_notes :]:
                self._progress.display.line(f"{'!' if note in record.warnings else 'i'} {note}")
            self._num_shown_notes = len(record.notes)

    def task_failed(self, name: str, elapsed_secs: float) -> None:
        self._progress.component_failed(name, elapsed_secs)


def kubeflow_record(root: Root, run_id: str) -> RunRecord | None:
    records = (record for record in root.records.read_all() if record.kubeflow_run == run_id)
    return next(records, None)


@dataclass
class Workflow:
    """Runs the tasks of a pipeline.

    A container that fails is not started again, even if the task has a retry policy: Kubeflow Pipelines as it
    is installed only retries lost pods. The step itself retries after temporary errors.
    """

    pipeline: CompiledPipeline
    launcher: Launcher
    cache: TaskCache
    observer: TaskDisplay
    parallelism: int = 2  # Number of containers at a time
    failures: list[ContainerFailedError] = field(default_factory=list)

    def run(self, parameters: Mapping[str, Any]) -> None:
        with ThreadPoolExecutor(self.parallelism) as pool:
            try:
                self._run_dag(self.pipeline.specification["root"]["dag"], dict(parameters), pool)
            except BaseException:
                self.launcher.processes.close()
                raise
        if self.failures:
            raise self.failures[0]

    def _run_dag(self, dag: Mapping[str, Any], dag_inputs: Values, pool: ThreadPoolExecutor) -> bool:
        """Runs the tasks of a DAG; returns True if all of them succeeded."""
        waiting = dict(dag["tasks"])
        done: dict[str, Values] = {}
        failed: set[str] = set()
        running: dict[Future[Values], str] = {}
        while waiting or running:
            interruption.check()
            num_waiting = len(waiting)
            for name, task in list(waiting.items()):
                needed = set(task.get("dependentTasks", []))
                always = task.get("triggerPolicy", {}).get("strategy") == _ALWAYS
                if needed & failed and not always:
                    failed.add(name)  # skipped, since a dependency failed
                    del waiting[name]
                elif needed <= done.keys() | failed:
                    del waiting[name]
                    component = self.pipeline.component(task)
                    inputs = resolve_inputs(task, component, dag_inputs, done, self.launcher.run_id)
                    if "dag" in component:  # in this thread, so that it does not occupy a worker
                        if self._run_dag(component["dag"], inputs, pool):
                            done[name] = {}
                        else:
                            failed.add(name)
                    else:
                        running[pool.submit(self._run_task, name, task, inputs)] = name
            if not running:
                if len(waiting) == num_waiting:
                    raise BadInputError(
                        f"The tasks {', '.join(sorted(waiting))} wait for each other, or for tasks that "
                        "do not exist: the server would refuse the pipeline."
                    )
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                try:
                    done[name] = future.result()
                except ContainerFailedError as error:
                    self.failures.append(error)
                    failed.add(name)
        return not failed

    def _run_task(self, name: str, task: Mapping[str, Any], inputs: Values) -> Values:
        shown = task.get("taskInfo", {}).get("name", name)
        component = self.pipeline.component(task)
        key = cache_key(inputs, component, self.pipeline.container(component), self.pipeline.pod(component))
        is_cacheable = task.get("cachingOptions", {}).get("enableCache", False)
        start = time.monotonic()
        self.observer.task_started(shown)
        if is_cacheable and (outputs := self.cache.find(key)) is not None:
            self.observer.task_finished(shown, True, time.monotonic() - start)
            return outputs
        try:
            outputs = self.launcher.launch(name, component, inputs)
        except ContainerFailedError:
            self.observer.task_failed(shown, time.monotonic() - start)
            raise
        if is_cacheable:
            self.cache.add(key, outputs)
        self.observer.task_finished(shown, False, time.monotonic() - start)
        return outputs
