import json

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.schema import root_schema
from tests.pushed_versions import serve_version

SCHEMA = """
feature { name: "fare" type: FLOAT }
feature { name: "n" type: INT }
feature { name: "city" type: BYTES }
feature { name: "later" type: BYTES lifecycle_stage: PLANNED }
"""


def columns(kinds):
    """Returns the columns of a run's record."""
    return [{"name": name, "kind": kind} for name, kind in kinds.items()]


def schema(text=SCHEMA):
    return text_format.Parse(text, schema_pb2.Schema())


def push(root, version, run_id, folder="serving"):
    serve_version(root / folder, version, run_id)


def hidden(root):
    return sorted(path.name for path in root.glob(".*"))


def test_the_schema_of_a_run_is_the_roots_once_it_has_pushed(tmp_path):
    Root(tmp_path).schema.prepare("run-1", schema(), columns({"fare": "number"}))
    assert Root(tmp_path).schema.read() is None
    push(tmp_path, 5, "run-1")
    Root(tmp_path).schema.adopt()
    found = Root(tmp_path).schema.read()
    assert found.schema == schema()
    assert found.types == {"fare": "FLOAT", "n": "INT", "city": "BYTES", "later": ""}
    assert (found.origin.run_id, found.origin.kinds) == ("run-1", {"fare": "number"})
    assert (found.is_edited, Root(tmp_path).schema.accepted_run(found)) == (False, "")
    assert hidden(tmp_path) == []


def test_a_run_that_did_not_push_leaves_none(tmp_path):
    Root(tmp_path).schema.prepare("run-1", schema(), [])
    Root(tmp_path).schema.adopt("run-1")
    assert hidden(tmp_path) == [".schema-run-1"]  # it goes on
    Root(tmp_path).schema.adopt("run-2")
    assert (hidden(tmp_path), Root(tmp_path).schema.read()) == ([], None)


@pytest.mark.parametrize("folder", ["serving", "withdrawn"])
def test_a_run_that_was_killed_after_its_push_has_not_lost_it(tmp_path, folder):
    Root(tmp_path).schema.prepare("run-1", schema(), [])
    push(tmp_path, 5, "run-1", folder)
    assert Root(tmp_path).schema.read().schema == schema()  # the next run plans with it
    Root(tmp_path).schema.adopt("run-2")
    assert Root(tmp_path).schema.file.is_file()
    assert Root(tmp_path).schema.read().origin.run_id == "run-1"


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_run_that_is_killed_while_it_settles(tmp_path, monkeypatch, moved):
    Root(tmp_path).schema.prepare("run-1", schema(), columns({"n": "number"}))
    push(tmp_path, 5, "run-1")
    original, done = root_schema.Path.replace, []

    def replace(self, target):
        if len(done) == moved:
            raise KeyboardInterrupt
        done.append(self)
        return original(self, target)

    monkeypatch.setattr(root_schema.Path, "replace", replace)
    monkeypatch.setattr(
        root_schema.atomic_files, "remove_below", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        Root(tmp_path).schema.adopt()
    monkeypatch.undo()
    for _ in range(2):
        found = Root(tmp_path).schema.read()
        assert (found.schema, found.origin.run_id) == (schema(), "run-1")
        Root(tmp_path).schema.adopt()
    assert not found.is_edited
    assert hidden(tmp_path) == []


def test_a_later_push_does_not_replace_it(tmp_path):
    Root(tmp_path).schema.prepare("run-1", schema(), [])
    push(tmp_path, 5, "run-1")
    Root(tmp_path).schema.adopt()
    Root(tmp_path).schema.prepare("run-2", schema('feature { name: "z" }'), [])
    push(tmp_path, 6, "run-2")
    Root(tmp_path).schema.adopt()
    assert Root(tmp_path).schema.read().origin.run_id == "run-1"
    assert hidden(tmp_path) == []


def test_an_accepted_run_is_compared_with_as_long_as_the_same_version_serves(tmp_path):
    push(tmp_path, 5, "run-1")
    Root(tmp_path).schema.replace(schema(), "run-2", [])
    assert Root(tmp_path).schema.accepted_run(Root(tmp_path).schema.read()) == "run-2"
    push(tmp_path, 6, "run-3")
    assert Root(tmp_path).schema.accepted_run(Root(tmp_path).schema.read()) == ""
    (tmp_path / "serving" / "6").rename(tmp_path / "elsewhere")  # a rollback
    assert Root(tmp_path).schema.accepted_run(Root(tmp_path).schema.read()) == "run-2"


def test_what_is_replaced_is_kept_beside_it(tmp_path):
    Root(tmp_path).schema.replace(schema(), "run-1", [])
    edited = Root(tmp_path).schema.file.read_text() + "# mine\n"
    Root(tmp_path).schema.file.write_text(edited)
    assert Root(tmp_path).schema.read().is_edited
    Root(tmp_path).schema.replace(schema('feature { name: "z" }'), "run-2", [])
    assert not Root(tmp_path).schema.read().is_edited
    assert (tmp_path / "schema" / "previous.pbtxt").read_text() == edited


def test_files_that_were_broken(tmp_path):
    Root(tmp_path).schema.replace(schema(), "run-1", [])
    origin = tmp_path / "schema" / "origin.json"
    whole = json.loads(origin.read_text())
    for text in ("{", '{"run": 1}', json.dumps({**whole, "kinds": {"fare": 7}})):
        origin.write_text(text)
        with pytest.raises(BadInputError, match=r"origin\.json is not what a run wrote .*Restore it"):
            Root(tmp_path).schema.read()
    origin.unlink()
    found = Root(tmp_path).schema.read()
    assert (found.origin, found.is_edited, Root(tmp_path).schema.accepted_run(found)) == (None, False, "")
    Root(tmp_path).schema.file.write_text("feature {\n  typ: INT\n}\n")
    with pytest.raises(
        BadInputError, match=r"schema/schema\.pbtxt is not a Schema.*line 2, column 3.*remove the file"
    ):
        Root(tmp_path).schema.read()


def test_how_numbers_were_written_is_kept(tmp_path):
    found = [
        {"name": "fare", "kind": "number", "number_format": {"decimal": ","}},
        {"name": "n", "kind": "number", "number_format": None},
    ]
    Root(tmp_path).schema.replace(schema(), "run-1", found)
    origin = Root(tmp_path).schema.read().origin
    assert origin.number_formats == {"fare": NumberFormat(",")}
    assert origin.kinds == {"fare": "number", "n": "number"}
