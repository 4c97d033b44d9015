"""The judges, tried on a hand-made pipeline: the values they pass on, and those they refuse."""

import pathlib
import sys

import pytest
from kfp import compiler, components, dsl, local

from tests.kubeflow.launcher import Launcher, launching
from tests.kubeflow.object_store import SERVER, object_store

pytestmark = pytest.mark.skipif(
    not SERVER.exists(), reason="no object store; `make test-kubeflow` builds it"
)

WRITE = """
import json, pathlib, sys
rows, folder, said, given = sys.argv[1:]
path = pathlib.Path(folder) / "part" / "rows"
path.parent.mkdir(parents=True)
path.write_text("row\\n" * int(rows))
pathlib.Path(said).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(said).write_text(f"{rows} rows")
given = json.loads(given)["outputs"]
artifact = given["artifacts"]["table"]["artifacts"][0]
artifact["metadata"] = {"rows": int(rows)}
pathlib.Path(given["outputFile"]).write_text(json.dumps({"artifacts": {"table": {"artifacts": [artifact]}}}))
"""
COUNT = """
import json, pathlib, sys
folder, said, counted, given = sys.argv[1:]
metadata = json.loads(given)["inputs"]["artifacts"]["table"]["artifacts"][0]["metadata"]
rows = (pathlib.Path(folder) / "part" / "rows").read_text().count("row")
pathlib.Path(counted).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(counted).write_text(f"{said}: {rows} of {metadata['rows']:g}")
"""


@dsl.container_component
def write(rows: int, table: dsl.Output[dsl.Dataset], said: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="image:1", command=["python", "-c", WRITE], args=[rows, table.path, said, "{{$}}"]
    )


@dsl.container_component
def count(table: dsl.Input[dsl.Dataset], said: str, counted: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="image:1", command=["python", "-c", COUNT], args=[table.path, said, counted, "{{$}}"]
    )


@dsl.pipeline(name="hand-made")
def hand_made(rows: int = 7) -> str:
    written = write(rows=rows)
    return count(table=written.outputs["table"], said=written.outputs["said"]).outputs["counted"]


@pytest.fixture
def run(tmp_path):
    """Runs the compiled YAML by kfp.local's own code; artifacts go through the object store."""
    file = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(hand_made, str(file))

    def run(python=sys.executable, **arguments):
        root = tmp_path / "pipeline_root"
        root.mkdir()
        with object_store(tmp_path / "store") as store:
            run.store = store
            run.launcher = Launcher(
                store, root, lambda command, _: [python, *command[1:]], environment={}
            )
            local.init(runner=local.DockerRunner(), pipeline_root=str(root))
            with launching(run.launcher):
                task = components.load_component_from_file(str(file))(**arguments)
            run.left = [path for path in root.rglob("rows") if path.is_file()]
            run.keys = store.keys("")
        return task

    return run


def test_parameters_and_artifacts_go_from_task_to_task_through_the_store(run):
    assert run(rows=12).output == "12 rows: 12 of 12"
    assert [(image, code) for image, _, code in run.launcher.launched] == [("image:1", 0)] * 2
    ups_and_downs = [(way, pathlib.PurePath(key).name, n) for way, key, n in run.store.transfers]
    assert ups_and_downs == [("up", "table", 1), ("down", "table", 1)]
    assert [pathlib.PurePath(key).parts[2:] for key in run.keys] == [("table", "part", "rows")]
    assert not run.left


def test_a_parameter_has_its_default(run):
    assert run().output == "7 rows: 7 of 7"


def test_an_unknown_parameter_is_refused(run):
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        run(columns=3)


def test_a_container_that_fails_ends_the_run(run):
    with pytest.raises(RuntimeError, match="FAILURE"):
        run(python="/bin/false")
    assert [code for _, _, code in run.launcher.launched] == [1]
    assert not run.store.transfers
