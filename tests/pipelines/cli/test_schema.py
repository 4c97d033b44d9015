import json

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipelines.root import Root
from tests.pushed_versions import serve_version

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_fraction: 1 min_count: 1 } }
feature { name: "city" type: BYTES domain: "city" presence { min_count: 1 } }
string_domain { name: "city" value: "a" value: "b" }
"""


@pytest.fixture
def root(tmp_path):
    root = Root(tmp_path / "root")
    serve_version(root.serving, 5, "run-1")
    schema = text_format.Parse(SCHEMA, schema_pb2.Schema())
    root.schema.replace(schema, "run-1", [{"name": "x", "kind": "number"}])
    return root


def test_show_prints_the_schema_and_its_origin(warm_command, root, killed):
    result = warm_command("schema", "show", "--root", root)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"schema         {root.schema.file}"
    assert lines[1].startswith("from           run run-1, accepted on 20")
    assert lines[2:] == [
        "compared with  the data of run run-1",
        "",
        "column  type   present    values",
        "x       FLOAT  required",
        "city    BYTES  some rows  'a', 'b'",
    ]
    root.schema.file.write_text(SCHEMA)
    serve_version(root.serving, 6, "run-2")
    own = {**killed.config, "schema": {"path": "/mine.pbtxt"}}
    root.records.write(killed.changed(config=own))
    result = warm_command("schema", "show", "--root", root)
    lines = result.stdout.splitlines()
    assert lines[1].endswith("; edited since")
    assert lines[2:4] == [
        "compared with  the data of version 6, the live version",
        "! not used by the newest run: its schema.path = '/mine.pbtxt' overrides it",
    ]


def test_show_as_json(warm_command, root):
    shown = json.loads(warm_command("schema", "show", "--json", "--root", root).stdout)
    assert shown.pop("written").startswith("20")
    assert shown.pop("columns")[1] == {
        "name": "city", "type": "BYTES", "present": "some rows", "values": "'a', 'b'", "domain": ["a", "b"],
    }  # fmt: skip
    assert shown == {
        "file": str(root.schema.file), "run_id": "run-1", "accepted": True, "edited": False,
        "compared_with_run": "run-1", "serving_version": "5", "path_of_newest_run": None,
    }  # fmt: skip


def test_what_cannot_be_shown_or_accepted_exits_with_2(warm_command, root, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, message in (
        (("show", "--root", empty), "There is no schema in"),
        (("accept", "--root", empty), "There are no runs in"),
        (("accept", "run-9", "--root", root), "There are no runs in"),
    ):
        result = warm_command("schema", *arguments)
        assert (result.returncode, result.stdout) == (2, ""), arguments
        assert message in result.stderr
    assert not list(empty.iterdir())
    root.schema.file.write_text("feature {\n  typ: INT\n}\n")
    result = warm_command("schema", "show", "--root", root)
    assert (result.returncode, result.stdout) == (2, "")
    assert "line 2, column 3" in result.stderr


@pytest.mark.parametrize("command", ["show", "accept"])
def test_the_schema_of_a_tfx_pipeline_is_in_its_definition(warm_command, tmp_path, of_tfx_pipeline, command):
    of_tfx_pipeline(tmp_path)
    result = warm_command("schema", command, "--root", tmp_path)
    assert result.returncode == 2
    assert "its runs are of the TFX pipeline 'team', which makes its own schema" in result.stderr
