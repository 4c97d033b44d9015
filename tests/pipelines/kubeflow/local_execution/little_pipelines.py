"""Pipelines of a few lines of Python, compiled by kfp, to see how they are executed."""

import inspect
import warnings
from pathlib import Path

from kfp import compiler, dsl

from pipelines.kubeflow.local_execution.containers import Processes, as_subprocess
from pipelines.kubeflow.local_execution.driver import CompiledPipeline, TaskCache
from pipelines.kubeflow.local_execution.launcher import Launcher
from pipelines.kubeflow.local_execution.workflow import Workflow


def container(name, parameters, program, *arguments):
    """Returns a component that runs a Python program, which may use `sys`, `pathlib`, `os` and `json`.

    `parameters` has the types of inputs and outputs by name; an argument is such a name or another word.
    """

    def build(*values):
        given = dict(zip(parameters, values, strict=True))
        return dsl.ContainerSpec(
            image="none",
            command=["python", "-S", "-c", f"import sys, pathlib, os, json\n{program}"],
            args=[given.get(argument, argument) for argument in arguments],
        )

    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = [inspect.Parameter(key, kinds, annotation=kind) for key, kind in parameters.items()]
    build.__name__ = name
    build.__signature__ = inspect.Signature(signature, return_annotation=dsl.ContainerSpec)
    return dsl.container_component(build)


def compiled(function, folder):
    """Returns the pipeline that kfp makes of a function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = dsl.pipeline(function, name="little")
        compiler.Compiler().compile(pipeline, str(folder / "little.yaml"))
    return CompiledPipeline.parse((folder / "little.yaml").read_text())


class Seen:
    """An observer that keeps its events."""

    def __init__(self):
        self.events = []

    def task_started(self, name):
        self.events.append(("started", name))

    def task_finished(self, name, cached, elapsed_secs):
        self.events.append(("cached" if cached else "finished", name))

    def task_failed(self, name, elapsed_secs):
        self.events.append(("failed", name))

    def ended(self):
        return {name: how for how, name in self.events if how != "started"}


def workflow(pipeline, folder: Path, run_id="run-1", **settings):
    """Returns a workflow that executes a pipeline, with all files in a folder."""
    launcher = Launcher(pipeline, run_id, folder / "containers", folder / "logs", as_subprocess, Processes())
    return Workflow(pipeline, launcher, TaskCache(folder / "cache"), Seen(), **settings)
