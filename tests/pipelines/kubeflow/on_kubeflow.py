"""Runs on Kubeflow whose steps are called in this process."""

import itertools
from dataclasses import replace

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2

from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.kubeflow import step
from pipelines.kubeflow.compile.dag import END, RECORD
from pipelines.kubeflow.run_folder import PlannedRun, PlannedStep, RunFolder
from pipelines.kubeflow.steps.plan_step import plan_on_kubeflow
from pipelines.runs.checks.component_checks import AnomalyCheck, check_as_json
from pipelines.steps.step_folders import StepFolders, new_artifact
from pipelines.steps.step_plan import StepPlan

_numbers = itertools.count()

DEFINITION = """
from tfx.orchestration.pipeline import Pipeline

def create_pipeline():
    return Pipeline("team", "elsewhere")
"""
ANOMALIES = "tfx.types.standard_artifacts.ExampleAnomalies"


class TeamOnKubeflow:
    """The pipeline of a `Team`, a step at a time."""

    def __init__(self, team, tasks):
        self.root = team.root
        self._team = team
        self._tasks = tasks

    def plan(self, run="run-1", kubeflow=(), parameters=(), **arguments):
        """Plans a run, and returns the keys of its steps."""
        source = {"file": str(self._team.file), "arguments": arguments, "parameters": dict(parameters)}
        config = TfxPipelineConfig.model_validate({"pipeline": source, "kubeflow": dict(kubeflow)})
        return plan_on_kubeflow(self.root, config, run, self._tasks)

    def step(self, component, run="run-1"):
        """Runs a step, and returns its exit code."""
        given = ["--run", run] if component in (RECORD, END) else []
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KFP_RUN_ID", run)
            return step.main([component, "--root", str(self.root), "--key", "any", *given])

    def run(self, run="run-1", **arguments):
        """Runs all steps, until one fails, and returns the record."""
        self.plan(run, **arguments)
        all(self.step(component, run) == 0 for component in (*self._tasks, RECORD))
        assert self.step(END, run) == 0
        return self.record(run)

    def record(self, run="run-1"):
        """Returns the record of a run."""
        (record,) = (one for one in self.root.records.read_all() if one.kubeflow_run == run)
        return record


def begin(root, record, *steps, run="run-1", **fields):
    """Begins a run with steps that are planned already, and returns its folder."""
    root.records.write(record.changed(kubeflow_run=run))
    file = root.path.parent / f"team_{next(_numbers)}.py"
    file.write_text(DEFINITION)
    folder = RunFolder(root, run)
    folder.write_plan(PlannedRun(tuple(steps), **{"definition": {"file": str(file)}, **fields}))
    folder.write_run(record.run_id, num_notes=len(record.notes))
    return folder


def planned(component, made_by, check=None, **fields):
    """Returns a planned step, with anomalies as its output."""
    executor = {"spec": {"classPath": "tfx.any.Executor"}}
    plan = StepPlan(component, executor, {}, outputs={"anomalies": ANOMALIES})
    fields = {"reason": "it is new", **fields}
    return PlannedStep(plan, None, made_by, check=check and check_as_json(check), **fields)


WARNING = AnomalyCheck("ExampleValidator", "warn", has_own_schema=True)
FAILING = replace(WARNING, on_anomalies="fail")


def make(root, planned_step, *anomalies):
    """Makes the output of a planned step, with an anomaly in each of some columns."""
    folders = StepFolders(root.artifacts)
    artifact = new_artifact(ANOMALIES)
    artifact.uri = str(folders.place(planned_step.plan) / "anomalies")
    artifact.splits = ["train"]
    proto = anomalies_pb2.Anomalies()
    for column in anomalies:
        proto.anomaly_info[column].description = "odd"
    folder = folders.place(planned_step.plan) / "anomalies" / "Split-train"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SchemaDiff.pb").write_bytes(proto.SerializeToString())
    folders.finish(planned_step.plan, {"anomalies": [artifact]}, planned_step.made_by, 1.0)
