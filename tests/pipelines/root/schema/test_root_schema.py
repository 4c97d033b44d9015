import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.pusher.provenance import Provenance
from pipelines.errors import BadInputError
from pipelines.root.schema import root_schema
from pipelines.root.schema.root_schema import (
    adopt_root_schema,
    prepare_root_schema,
    read_root_schema,
    replace_root_schema,
    schema_file,
)
from tests.pushed_versions import write_version

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
    write_version(
        Provenance(run_id, "model"), str(root / folder / str(version)), str(root / folder)
    )


def hidden(root):
    return sorted(path.name for path in root.glob(".*"))


def test_the_schema_of_a_run_is_the_roots_once_it_has_pushed(tmp_path):
    prepare_root_schema(tmp_path, "run-1", schema(), columns({"fare": "number"}))
    assert read_root_schema(tmp_path) is None
    push(tmp_path, 5, "run-1")
    adopt_root_schema(tmp_path)
    found = read_root_schema(tmp_path)
    assert found.schema == schema()
    assert found.types == {"fare": "FLOAT", "n": "INT", "city": "BYTES", "later": ""}
    assert (found.origin.run_id, found.origin.kinds) == ("run-1", {"fare": "number"})
    assert (found.is_edited, found.run_to_compare_with(tmp_path)) == (False, "")
    assert hidden(tmp_path) == []


def test_a_run_that_did_not_push_leaves_none(tmp_path):
    prepare_root_schema(tmp_path, "run-1", schema(), [])
    adopt_root_schema(tmp_path, "run-1")
    assert hidden(tmp_path) == [".schema-run-1"]  # it goes on
    adopt_root_schema(tmp_path, "run-2")
    assert (hidden(tmp_path), read_root_schema(tmp_path)) == ([], None)


@pytest.mark.parametrize("folder", ["serving", "withdrawn"])
def test_a_run_that_was_killed_after_its_push_has_not_lost_it(tmp_path, folder):
    prepare_root_schema(tmp_path, "run-1", schema(), [])
    push(tmp_path, 5, "run-1", folder)
    assert read_root_schema(tmp_path).schema == schema()  # the next run plans with it
    adopt_root_schema(tmp_path, "run-2")
    assert schema_file(tmp_path).is_file()
    assert read_root_schema(tmp_path).origin.run_id == "run-1"


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_run_that_is_killed_while_it_settles(tmp_path, monkeypatch, moved):
    prepare_root_schema(tmp_path, "run-1", schema(), columns({"n": "number"}))
    push(tmp_path, 5, "run-1")
    original, done = root_schema.Path.replace, []

    def replace(self, target):
        if len(done) == moved:
            raise KeyboardInterrupt
        done.append(self)
        return original(self, target)

    monkeypatch.setattr(root_schema.Path, "replace", replace)
    monkeypatch.setattr(
        root_schema.shutil, "rmtree", lambda folder: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        adopt_root_schema(tmp_path)
    monkeypatch.undo()
    for _ in range(2):
        found = read_root_schema(tmp_path)
        assert (found.schema, found.origin.run_id) == (schema(), "run-1")
        adopt_root_schema(tmp_path)
    assert not found.is_edited
    assert hidden(tmp_path) == []


def test_a_later_push_does_not_replace_it(tmp_path):
    prepare_root_schema(tmp_path, "run-1", schema(), [])
    push(tmp_path, 5, "run-1")
    adopt_root_schema(tmp_path)
    prepare_root_schema(tmp_path, "run-2", schema('feature { name: "z" }'), [])
    push(tmp_path, 6, "run-2")
    adopt_root_schema(tmp_path)
    assert read_root_schema(tmp_path).origin.run_id == "run-1"
    assert hidden(tmp_path) == []


def test_an_accepted_run_is_compared_with_as_long_as_the_same_version_serves(tmp_path):
    push(tmp_path, 5, "run-1")
    replace_root_schema(tmp_path, schema(), "run-2", [])
    assert read_root_schema(tmp_path).run_to_compare_with(tmp_path) == "run-2"
    push(tmp_path, 6, "run-3")
    assert read_root_schema(tmp_path).run_to_compare_with(tmp_path) == ""
    (tmp_path / "serving" / "6").rename(tmp_path / "elsewhere")  # a rollback
    assert read_root_schema(tmp_path).run_to_compare_with(tmp_path) == "run-2"


def test_what_is_replaced_is_kept_beside_it(tmp_path):
    replace_root_schema(tmp_path, schema(), "run-1", [])
    edited = schema_file(tmp_path).read_text() + "# mine\n"
    schema_file(tmp_path).write_text(edited)
    assert read_root_schema(tmp_path).is_edited
    replace_root_schema(tmp_path, schema('feature { name: "z" }'), "run-2", [])
    assert not read_root_schema(tmp_path).is_edited
    assert (tmp_path / "schema" / "previous.pbtxt").read_text() == edited


def test_files_that_were_broken(tmp_path):
    replace_root_schema(tmp_path, schema(), "run-1", [])
    origin = tmp_path / "schema" / "origin.json"
    for text in ("{", '{"run": 1}'):
        origin.write_text(text)
        with pytest.raises(
            BadInputError, match=r"origin\.json is not what a run wrote .*Restore it"
        ):
            read_root_schema(tmp_path)
    origin.unlink()
    found = read_root_schema(tmp_path)
    assert (found.origin, found.is_edited, found.run_to_compare_with(tmp_path)) == (None, False, "")
    schema_file(tmp_path).write_text("feature {\n  typ: INT\n}\n")
    with pytest.raises(
        BadInputError, match=r"schema/schema\.pbtxt is no Schema.*line 2, column 3.*remove the file"
    ):
        read_root_schema(tmp_path)


def test_how_numbers_were_written_is_kept(tmp_path):
    found = [
        {"name": "fare", "kind": "number", "decimal": ","},
        {"name": "n", "kind": "number", "decimal": None},
    ]
    replace_root_schema(tmp_path, schema(), "run-1", found)
    origin = read_root_schema(tmp_path).origin
    assert origin.decimals == {"fare": ","}
    assert origin.kinds == {"fare": "number", "n": "number"}
