"""Eight runs of eight roots, on one database, one of them killed and continued."""

import json
import pathlib
import signal
import subprocess
import sys

import pytest

from pipelines.root import Root
from pipelines.root.metadata.store import run_contexts

pytestmark = pytest.mark.mysql

PASSWORD = "s3cret-of-the-test"
RUNS = 8
KILLED = 2
STATES = {"COMPLETE": 3, "CACHED": 5}
ALL = {
    "CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform", "Trainer", "Evaluator",
    "ServingCheck", "Pusher", "ServedModel", "ServedStatistics",
}  # fmt: skip


@pytest.fixture(scope="module")
def ended(server, tmp_path_factory):
    """The folder of the roots, and how the runs ended."""
    folder = tmp_path_factory.mktemp("runs")
    rows = (f"{n % 7},{n % 5}.5,{'yes' if n % 7 > 3 else 'no'}\n" for n in range(300))
    (folder / "trips.csv").write_text("a,b,y\n" + "".join(rows))
    program = pathlib.Path(__file__).with_name("parallel_runs_program.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIPELINES_METADATA_PASSWORD", PASSWORD)
        patch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parents[2]))
        result = subprocess.run(
            [sys.executable, program, folder, server.database("parallel"), str(RUNS)],
            capture_output=True,
            text=True,
            timeout=1700,
        )
    assert result.returncode == 0, result.stderr[-2_000:]
    return folder, json.loads(result.stdout.splitlines()[-1])


def test_all_end_as_they_should(ended):
    folder, said = ended
    expected = {str(number): 0 for number in range(RUNS)}
    expected[str(KILLED)] = -signal.SIGKILL
    assert said == {"codes": expected, "resumed": 0}
    for number in range(RUNS):
        line = json.loads((folder / f"{number}.out").read_text().splitlines()[-1])
        assert line["status"] == "pushed", line


def test_nothing_is_lost_or_mixed_up(ended, monkeypatch):
    folder, _ = ended
    monkeypatch.setenv("PIPELINES_METADATA_PASSWORD", PASSWORD)
    seen = set()
    for number in range(RUNS):
        root = folder / f"root-{number}"
        (record,) = Root(root).records.read_all()
        assert {part.name for part in record.components} == ALL
        store = Root(root).metadata.open()
        (context,) = run_contexts(store, Root(root).metadata.root_id())
        assert context.name == record.run_id
        executions = store.get_executions_by_context(context.id)
        # Resolvers are executions, too. A run killed in the middle runs again as the same one.
        assert {one.last_known_state for one in executions} <= set(STATES.values())
        assert len(executions) == len(ALL)
        artifacts = store.get_artifacts_by_context(context.id)
        assert artifacts
        for artifact in artifacts:
            assert pathlib.Path(artifact.uri).is_relative_to(root)
            assert pathlib.Path(artifact.uri).exists()
        assert not seen & {artifact.id for artifact in artifacts}
        seen |= {artifact.id for artifact in artifacts}


def test_the_password_is_nowhere(ended):
    folder, _ = ended
    for path in folder.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path
