import itertools
import textwrap

import pytest

from pipelines.root import Root
from pipelines.steps.definition import load_pipeline
from pipelines.steps.planning import plan_steps
from pipelines.steps.running import run_steps
from pipelines.steps.step_folders import StepFolders

_numbers = itertools.count()

# Write -> Copy: a text becomes a file, whose copies become another one.
COMPONENTS = """
import os
import pathlib

from tfx.dsl.component.experimental.annotations import (
    InputArtifact,
    OutputArtifact,
    OutputDict,
    Parameter,
)
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver, ResolverStrategy
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.pipeline import Pipeline
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing


@component
def Write(text: Parameter[str], examples: OutputArtifact[Examples]):
    pathlib.Path(examples.uri, "text").write_text(text)
    examples.set_string_custom_property("text", text)


@component
def Copy(examples: InputArtifact[Examples], model: OutputArtifact[Model], times: Parameter[int] = 2):
    text = pathlib.Path(examples.uri, "text").read_text()
    pathlib.Path(model.uri, "text").write_text(text * times)
    if times < 0:
        raise ValueError("times is negative")


def pipeline(*components, **settings):
    return Pipeline("team", "elsewhere", components=components, **{"enable_cache": True, **settings})

"""

TWO = """
def create_pipeline(text="ab", times=3):
    write = Write(text=text)
    return pipeline(write, Copy(examples=write.outputs["examples"], times=times))
"""


class Observer:
    """Remembers the steps: `ran` and `reused` in order, with their reasons."""

    def __init__(self):
        self.ran, self.reused, self.failed = {}, {}, []

    def step_started(self, plan):
        pass

    def step_finished(self, step, reused, elapsed_secs, reason):
        (self.reused if reused else self.ran)[step.component] = reason

    def step_failed(self, plan, elapsed_secs):
        self.failed.append(plan.component)


class Team:
    """A team's pipeline in a file of its own, and its root."""

    def __init__(self, folder):
        self.root = Root(folder / "root")
        self.file = folder / f"team_pipeline_{next(_numbers)}.py"
        self.define(TWO)

    def define(self, definition):
        self.file.write_text(COMPONENTS + textwrap.dedent(definition))

    def load(self, **arguments):
        return load_pipeline(self.file, arguments=arguments)

    def plan(self, run_id="run-1", parameters=(), use_cache=True, **arguments):
        return plan_steps(self.load(**arguments), self.root, run_id, dict(parameters), use_cache)

    def run(self, run_id="run-1", *, beam_options=(), **settings):
        observer = Observer()
        plan = self.plan(run_id, **settings)
        run_steps(plan, StepFolders(self.root.artifacts), run_id, observer, beam_options)
        return observer

    def text(self, component="Copy", key="model"):
        """Returns the text of the newest output of a component."""
        newest = StepFolders(self.root.artifacts).all_finished(component)[-1]
        return (newest.folder / key / "text").read_text()


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)
