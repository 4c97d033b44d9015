"""The launcher, tried on a hand-made pipeline: the values it passes on, and those it refuses."""

import sys

import pytest
from kfp import compiler, components, dsl, local

from tests.kubeflow.launcher import Launcher, launching

WRITE = """
import pathlib, sys
rows, said = sys.argv[1:]
pathlib.Path(said).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(said).write_text(f"{rows} rows")
"""

COUNT = """
import pathlib, sys
said, counted = sys.argv[1:]
pathlib.Path(counted).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(counted).write_text(f"{said}: counted")
"""


@dsl.container_component
def write(rows: int, said: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="image:1", command=["python", "-c", WRITE], args=[rows, said])


@dsl.container_component
def count(said: str, counted: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="image:1", command=["python", "-c", COUNT], args=[said, counted])


@dsl.pipeline(name="hand-made")
def hand_made(rows: int = 7) -> str:
    return count(said=write(rows=rows).outputs["said"]).outputs["counted"]


@pytest.fixture
def run(tmp_path):
    """Runs the compiled YAML by kfp.local's own code."""
    file = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(hand_made, str(file))

    def run(python=sys.executable, **arguments):
        root = tmp_path / "pipeline_root"
        root.mkdir()
        run.launcher = Launcher(root, lambda command: [python, *command[1:]])
        local.init(runner=local.DockerRunner(), pipeline_root=str(root))
        with launching(run.launcher):
            return components.load_component_from_file(str(file))(**arguments)

    return run


def test_parameters_go_from_task_to_task(run):
    assert run(rows=12).output == "12 rows: counted"
    assert [(image, code) for image, _, code in run.launcher.launched] == [("image:1", 0)] * 2


def test_a_parameter_has_its_default(run):
    assert run().output == "7 rows: counted"


def test_an_unknown_parameter_is_refused(run):
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        run(columns=3)


def test_a_container_that_fails_ends_the_run(run):
    with pytest.raises(RuntimeError, match="FAILURE"):
        run(python="/bin/false")
    assert [code for _, _, code in run.launcher.launched] == [1]
