import json
from dataclasses import asdict, replace

from pipelines.root import Root
from pipelines.runs.checks.schema_keeping import SchemaKeeping
from pipelines.runs.plan.run_plan import RunRequest, plan_run

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT presence { min_count: 1 } }
"""


def test_the_schema_of_a_run_is_prepared_with_what_its_columns_are_taken_for(data, tmp_path, display):
    root = tmp_path / "root"
    root.mkdir()
    plan = plan_run(RunRequest(root=Root(root), data=str(data), label="y"), display)
    keeping = SchemaKeeping.from_plan(plan)
    assert keeping.label == "y"
    assert keeping.classes == ("0", "1")
    assert {column["name"]: column["kind"] for column in keeping.columns} == {"x": "number", "y": "number"}
    assert SchemaKeeping.from_json(json.loads(json.dumps(asdict(keeping)))).label == "y"
    inferred = tmp_path / "inferred"
    inferred.mkdir()
    (inferred / "schema.pbtxt").write_text(SCHEMA)
    SchemaKeeping.from_json(json.loads(json.dumps(asdict(keeping)))).prepare(
        str(inferred), Root(root), "run-1"
    )
    text = (root / ".schema-run-1" / "schema.pbtxt").read_text()
    assert "is_categorical: true" in text  # the label's domain
    origin = json.loads((root / ".schema-run-1" / "origin.json").read_text())
    assert origin["kinds"] == {"x": "number", "y": "number"}
    Root(root).schema.adopt()  # nothing was pushed
    (root / "schema").mkdir()
    (root / "schema" / "schema.pbtxt").write_text(SCHEMA)
    keeping.prepare(str(inferred), Root(root), "run-2")
    assert not (root / ".schema-run-2").exists()


def test_a_schema_of_the_user_is_not_kept(data, tmp_path, display):
    plan = plan_run(RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y"), display)
    assert SchemaKeeping.from_plan(replace(plan, schema=object())) is None
