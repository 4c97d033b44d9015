import json
from dataclasses import asdict, replace

from pydantic import TypeAdapter

from pipelines.runs.checks.schema_keeping import SchemaKeeping

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT presence { min_count: 1 } }
"""


def test_the_schema_of_a_run_is_prepared_with_what_its_columns_are_taken_for(plan, root, tmp_path):
    root.path.mkdir()
    planned = plan()
    keeping = SchemaKeeping.from_plan(planned)
    assert keeping.label == "y"
    assert keeping.classes == ("0", "1")
    assert {column["name"]: column["kind"] for column in keeping.columns} == {"x": "number", "y": "number"}
    from_json = TypeAdapter(SchemaKeeping).validate_json(json.dumps(asdict(keeping)))
    assert from_json.label == "y"
    inferred = tmp_path / "inferred"
    inferred.mkdir()
    (inferred / "schema.pbtxt").write_text(SCHEMA)
    from_json.prepare(str(inferred), root, "run-1")
    prepared = root.path / ".schema-run-1"
    assert "is_categorical: true" in (prepared / "schema.pbtxt").read_text()  # the label's domain
    origin = json.loads((prepared / "origin.json").read_text())
    assert origin["kinds"] == {"x": "number", "y": "number"}
    root.schema.adopt()  # nothing was pushed
    (root.path / "schema").mkdir()
    (root.path / "schema" / "schema.pbtxt").write_text(SCHEMA)
    keeping.prepare(str(inferred), root, "run-2")
    assert not (root.path / ".schema-run-2").exists()
    assert SchemaKeeping.from_plan(replace(planned, schema=object())) is None  # that of the user is not kept
