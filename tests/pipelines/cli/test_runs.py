import json

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipelines.root import Root
from tests.pipelines.cli import invocation


@pytest.fixture
def root(killed, tmp_path):
    return Root(tmp_path / "root")


def invoke(root, *arguments):
    return invocation.invoke(*arguments, "--root", root)


def test_runs_of_the_future_are_told_once_and_listed_in_their_order(root, killed):
    assert "future" not in invoke(root, "runs").stderr
    for run_id, number in (("20990101-000000", 1), ("20990102-000000", 2), ("20260103-000000", 3)):
        started = f"{run_id[:4]}-01-02T00:00:00+00:00"
        root.records.write(killed.changed(run_id=run_id, number=number, started=started))
    result = invoke(root, "runs", "--json")
    runs = [run["run_id"] for run in json.loads(result.stdout)]
    assert runs == [killed.run_id, "20990101-000000", "20990102-000000", "20260103-000000"]
    (line,) = result.stderr.splitlines()
    assert line.startswith("! 2 runs started in the future (20990102-000000 on 2099-01-02T00:00")


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("runs", "--json"),
        ("runs", "--compare", "20260102-030405", "20260102-030406"),
        ("report",),
        ("report", "20260102-030405"),
        ("report", "--index"),
        ("lineage", "20260102-030406"),
        ("prune", "--dry-run"),
        ("schema", "show"),
    ],
    ids=" ".join,
)
def test_a_run_that_failed_before_it_began_disturbs_nothing(root, killed, not_begun, arguments):
    config = {**killed.config, "retention": {"runs": 5}}
    root.records.write(killed.changed(config=config))
    schema = text_format.Parse('feature { name: "x" type: FLOAT }', schema_pb2.Schema())
    root.schema.replace(schema, killed.run_id, [])
    assert invoke(root, *arguments).stdout
