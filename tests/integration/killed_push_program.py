"""Kills runs around their push, lets each be followed by another run, and prints the files left.

python killed_push_program.py ROOT DATA.csv MOMENT...

Runs are forked off this process, which has loaded TFX once. The pipeline is a Trainer and an
Evaluator that take no time, and the Pusher of the product; plan, records, lock and steps are the
product's, too. `trainer.train_steps` makes one model another.
"""

import json
import os
import pathlib
import shutil
import signal
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import components  # noqa: I001  Before TFX: makes TFDV importable.

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model, ModelBlessing, ModelEvaluation, Schema

from components.evaluator.gate.verdict import Verdict
from components.pusher import executor, versions
from pipelines.runs import run
from pipelines.runs import execution as run_execution
from pipelines.runs import recorder as run_recorder
from pipelines.runs.definitions import csv_to_serving
from pipelines.runs.definitions.csv_to_serving import CsvToServing
from pipelines.terminal.progress import PlainDisplay, Progress
from pipelines.root import Root
from pipelines.root.history import newest_version_ever, read_runs, unconfirmed_pushes
from pipelines.runs.definitions.run_plan import RunPlan
from pipelines.runs.plan.run_plan import RunRequest
from pipelines.runs.recorder import StepRecorder
from pipelines.steps import running
from pipelines.steps.step_folders import StepFolders

assert components

NUM_FILES = 3
SCHEMA = 'feature { name: "x" type: FLOAT } feature { name: "y" type: INT }'
KEEP = 2

# By name: where the function is, and whether the kill comes before it or after it.
MOMENTS = {
    "before the step": (running, "_make_outputs", "before"),
    "before the Pusher": (executor.Executor, "Do", "before"),
    "before the copy": (versions, "copy_tree", "before"),
    "in the copy": (shutil, "copyfile", "after"),
    "after the copy": (versions, "copy_tree", "after"),
    "before the provenance": (versions, "write_provenance", "before"),
    "after the provenance": (versions, "write_provenance", "after"),
    "in the flush": (versions, "sync", "after"),
    "before the rename": (os, "rename", "before"),
    "after the rename": (os, "rename", "after"),
    "before the pruning": (versions, "prune_versions", "before"),
    "in the pruning": (versions, "remove_tree", "before"),
    "after the pruning": (versions, "prune_versions", "after"),
    "after push()": (executor, "push", "after"),
    "after the Pusher": (executor.Executor, "Do", "after"),
    "before step.json": (StepFolders, "finish", "before"),
    "after step.json": (StepFolders, "finish", "after"),
    "after the step": (StepRecorder, "step_finished", "after"),
    "before the record": (run_recorder.RunRecorder, "end", "before"),
    "in the record": (run_recorder, "ended_record", "after"),
}


@component
def FakeSchemaGen(schema: OutputArtifact[Schema]):  # noqa: N802
    pathlib.Path(schema.uri).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(schema.uri) / "schema.pbtxt").write_text(SCHEMA)


@component
def FakeTrainer(model: OutputArtifact[Model], train_steps: Parameter[int]):  # noqa: N802
    folder = pathlib.Path(model.uri) / "Format-Serving"
    folder.mkdir(parents=True)
    for number in range(NUM_FILES):
        (folder / f"part-{number}").write_text(str(train_steps))
    (folder / "saved_model.pb").write_text(str(train_steps))


@component
def FakeEvaluator(  # noqa: N802
    model: InputArtifact[Model],
    evaluation: OutputArtifact[ModelEvaluation],
    blessing: OutputArtifact[ModelBlessing],
):
    Verdict(blessed=True, metrics={"auc": 0.9}, failures=[]).write(evaluation.uri)
    blessing.set_int_custom_property("blessed", 1)


class Absent:
    """A component that is not in the pipeline: no check of it is ever asked for."""

    def __init__(self, role: str):
        self.id = role


def define(plan: RunPlan, data: object) -> CsvToServing:
    """Returns the pipeline of a plan, of three components."""
    schema_gen = FakeSchemaGen().with_id("SchemaGen")
    trainer = FakeTrainer(train_steps=plan.code.train_steps).with_id("Trainer")
    evaluator = FakeEvaluator(model=trainer.outputs["model"]).with_id("Evaluator")
    pusher = components.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=components.PushDestination(
            filesystem=components.PushDestination.Filesystem(base_directory=str(plan.root.serving))
        ),
        custom_config={
            "keep": KEEP,
            "newer_than": newest_version_ever(plan.root),
            "taken_over": list(unconfirmed_pushes(plan.root)),
        },
    )
    pipeline = components.Pipeline(
        pipeline_name="killed",
        pipeline_root=str(plan.root.artifacts),
        components=[schema_gen, trainer, evaluator, pusher],
        enable_cache=True,
    )
    roles = {role: Absent(role) for role in CsvToServing.__dataclass_fields__}
    roles.update(pipeline=pipeline, schema_gen=schema_gen)
    roles.update(trainer=trainer, evaluator=evaluator, pusher=pusher)
    return CsvToServing(**roles)


def kill_at(moment):
    """Has this process killed at one of MOMENTS, as soon as the Pusher is there."""
    owner, name, when = MOMENTS[moment]
    step_started = StepRecorder.step_started
    original = getattr(owner, name)

    def killing(*args, **kwargs):
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        original(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    def start(observer, plan):
        if plan.component == "Pusher":
            setattr(owner, name, killing)
        step_started(observer, plan)

    StepRecorder.step_started = start


class _NoCapture:
    def move_output(self, log):
        log.parent.mkdir(exist_ok=True)
        log.touch()


def run_in_fork(root, data, train_steps, moment=None, resume=False):
    """Runs the pipeline in a process of its own; returns its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        if moment:
            kill_at(moment)
        request = RunRequest(
            root=Root(root),
            data=str(data),
            label="y",
            settings=(f"trainer.train_steps={train_steps}",),
            resume=resume,
        )
        with open(root.parent / "shown", "a") as shown:
            record = run.run(request, Progress(PlainDisplay(shown)), _NoCapture())
        code = 0 if record.status == "pushed" else 3
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def versions_by_model(root):
    """Returns the served versions, with the contents of their files: all the same, if whole."""
    found = {}
    for folder in (root / "serving").iterdir():
        if folder.name.isdigit():
            files = [file for file in folder.iterdir() if file.is_file()]
            is_whole = len(files) == NUM_FILES + 1 and (folder / "assets.extra/push.json").is_file()
            contents = {file.read_text() for file in files} | (set() if is_whole else {"half"})
            found[folder.name] = sorted(contents)
    return found


def leftovers(root):
    """Returns the files that should not be in a root when no run is active."""
    found = [path for path in (root / "serving").iterdir() if not path.name.isdigit()]
    found += [path for path in root.rglob("*") if "partial" in path.name]
    found += list(root.glob("artifacts/*/*/unfinished"))
    found += list(root.glob(".schema-*"))
    found += [path for path in root.glob("artifacts/*/*") if not (path / "step.json").exists()]
    return [str(path) for path in found]


def schema_run(root):
    """Returns the run that the root's schema is from; None without one."""
    found = Root(root).schema.read()
    return found.origin.run_id if found else None


def main(root, data):
    csv_to_serving.csv_to_serving = define
    run_execution.component_fingerprints = lambda pipeline, run_id, *_, **__: {
        pipeline.pusher.id: {"push": run_id}
    }
    for steps in range(1, KEEP + 1):
        assert run_in_fork(root, data, steps) == 0
    for moment in MOMENTS:
        for resume in (True, False):
            steps += 1
            row = {"moment": moment, "resume": resume, "model": str(steps)}
            shutil.rmtree(root / "schema")  # as before the first push
            row["killed"] = run_in_fork(root, data, steps, moment)
            row["run_id"], row["schema"] = read_runs(Root(root))[-1].run_id, schema_run(root)
            row["status"] = read_runs(Root(root))[-1].status
            row["served"] = versions_by_model(root)
            row["left"] = len(leftovers(root))
            row["rerun"] = run_in_fork(root, data, steps, resume=resume)
            row["served_then"] = versions_by_model(root)
            row["left_then"] = leftovers(root)
            row["schema_then"] = schema_run(root)
            row["records"] = [
                [record.status, record.version]
                for record in read_runs(Root(root))
                if record.config["trainer"]["train_steps"] == steps
            ]
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
