import json

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.common.resolver import RESOLVER_CONFIG

from pipelines.data.staging import StagedData
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.records import ComponentRecord
from pipelines.runs.definitions.csv_to_serving import csv_to_serving
from pipelines.runs.definitions.fingerprints import code_fingerprint
from pipelines.runs.plan.run_plan import check_same_root_schema
from tests.pushed_versions import serve_version


def test_a_plan_says_what_is_done_and_writes_nothing(plan, data, root, tmp_path, shown):
    made = plan("trainer.train_steps=7", enable_cache=False)
    assert made.root == root
    assert (made.config.name, made.profile.num_rows, made.code.train_steps) == ("data", 40, 7)
    assert (made.enable_cache, made.unfinished) == (False, None)
    assert shown.getvalue().splitlines() == [f"    checking {data}"]
    assert list(tmp_path.iterdir()) == [data]


def test_a_plan_defines_the_pipeline_below_its_root(plan, root, tmp_path):
    made = plan("pusher.keep=3", "name=trips", enable_cache=False)
    defined = csv_to_serving(made, StagedData(tmp_path, "data.csv", ()))
    pipeline = defined.pipeline
    assert pipeline.pipeline_info.pipeline_name == "trips"
    assert pipeline.pipeline_info.pipeline_root == str(root.artifacts)
    assert not pipeline.enable_cache
    assert str(root.serving) in defined.pusher.exec_properties["push_destination"]
    pushed = json.loads(defined.pusher.exec_properties["custom_config"])
    assert (pushed["keep"], pushed["withdrawn"]) == (3, str(root.path / "withdrawn"))
    assert json.loads(defined.evaluator.exec_properties["default_checks"])["confidence"] == 0.95
    assert '"auc"' in defined.evaluator.exec_properties["eval_config"].replace("\\", "")
    assert not root.path.exists()


def test_resume_takes_the_configuration_of_the_killed_run(killed, plan, data, root):
    unfinished = killed.changed(code_fingerprint=code_fingerprint(plan().code))
    root.records.write(unfinished)
    resumed = plan(resume=True, data=None, label=None)
    assert resumed.unfinished == unfinished
    assert resumed.config.data.path == str(data)
    data.unlink()
    with pytest.raises(BadInputError, match=f"There is no file or folder {data}"):
        plan(resume=True, data=None, label=None)


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["trainer.seed=3"], r"started with trainer\.seed = 1; received 3\."),
        (["trainer.custom_config.a=1"], r"trainer\.custom_config\.a = None; received 1\."),
        # Transform of that run may have finished: it would keep the output of the old preprocessing_fn.
        ([], "code of the generic model has changed since run 2026"),
    ],
)
def test_resume_refuses_other_settings_or_code(plan, settings, message):
    with pytest.raises(BadInputError, match=message):
        plan(*settings, resume=True)


def test_resume_may_have_another_engine(killed, plan):
    plan().root.records.write(killed.changed(code_fingerprint=code_fingerprint(plan().code)))
    resumed = plan("beam.runner=flink", "beam.flink.master=jobs:8081", resume=True, runner="beam")
    assert resumed.unfinished.run_id == killed.run_id
    assert resumed.config.beam.flink.master == "jobs:8081"


def test_an_engine_that_is_not_used_is_said(plan):
    found = [one for one in plan("beam.direct.workers=3").findings if "--runner" in one]
    assert found == [
        "--runner local runs Beam in its own process; to use 3 processes on this machine, as in [beam], give "
        "--runner beam"
    ]
    assert not [one for one in plan().findings if "--runner" in one]
    used = plan("beam.direct.workers=3", runner="beam")
    assert not [one for one in used.findings if "--runner" in one]


def test_resume_refuses_other_data(killed, plan, data):
    data.write_text(data.read_text().replace("1.5", "2.5"))
    with pytest.raises(BadInputError, match="have changed since run 20260102-030405 started"):
        plan(resume=True)


def test_a_plan_knows_its_spans(plan, spans, shown):
    made = plan("data.spans=last 2", data=spans)
    assert made.spans.as_records() == (
        {"span": 9, "version": 1, "num_files": 1},
        {"span": 10, "version": 1, "num_files": 1},
    )
    assert made.profile.num_rows == 80
    assert made.config.name == "span"
    assert shown.getvalue().splitlines() == [f"    checking {spans}"]
    assert plan().spans is None


def test_resume_keeps_the_spans_of_the_run_that_did_not_end(killed, plan, spans, data, root, tmp_path):
    first = plan("data.spans=last 2", data=spans)
    record = killed.changed(
        name="span", config=first.config.model_dump(mode="json"), spans=first.spans.as_records(),
        data_fingerprint=first.profile.fingerprint, code_fingerprint=code_fingerprint(first.code),
    )  # fmt: skip
    root.records.write(record)
    for newer in ("span-11/v1", "span-9/v2"):
        (tmp_path / newer).mkdir(parents=True)
        (tmp_path / newer / "data.csv").write_text(data.read_text().replace("1.5", "2.5"))
    resumed = plan(resume=True, data=None, label=None)
    assert resumed.unfinished == record
    assert resumed.spans.spans == first.spans.spans
    assert resumed.findings[0] == (
        "newer spans, left for the next run: version 2 of span 9, version 1 of span 11"
    )
    assert [span["span"] for span in plan("data.spans=last 2", data=spans).spans.as_records()] == [10, 11]
    with pytest.raises(BadInputError, match=r"started with data\.spans = 'last 2'; received '11'"):
        plan("data.spans=11", resume=True, data=spans)
    (tmp_path / "span-10" / "v1" / "data.csv").unlink()
    with pytest.raises(BadInputError, match="--resume: the run read version 1 of span 10 of "):
        plan(resume=True, data=None, label=None)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (("beam.args=['--nonsense=1']",), {}, "Beam has no option '--nonsense=1'"),
        (("evaluator.label=tips",), {}, "evaluator.label = 'tips': the generic model has no such"),
        (("schema.path=none.pbtxt",), {}, "none.pbtxt cannot be read"),
        ((), {"runner": "beam"}, "is the same as --runner local"),
    ],
)
def test_what_is_asked_for_is_checked_before_anything_is_written(plan, root, settings, options, message):
    with pytest.raises(BadInputError, match=message):
        plan(*settings, **options)
    assert not root.path.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file", "file is not a writable folder"),
        ("root[1]", r"TFX would take '\[' for a file pattern"),
        ("x" * 300, r"cannot be read: File name too long\. Check --root"),
        ("loop", "--root"),
    ],
)
def test_a_root_that_cannot_be_used(plan, tmp_path, name, message):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = set(tmp_path.iterdir())
    with pytest.raises(BadInputError, match=message):
        plan(root=Root(tmp_path / name))
    assert set(tmp_path.iterdir()) == before


def test_data_that_are_a_link_that_leads_nowhere(plan, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(BadInputError, match="symbolic link that leads nowhere"):
        plan(data=str(tmp_path / "loop"))


SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: BYTES presence { min_count: 1 } }
"""


@pytest.fixture
def keep_schema(root):
    """Returns a function that makes a schema the root's, as `schema accept` of a run does."""

    def make(text=SCHEMA, newest_number=0):
        root.path.mkdir(exist_ok=True)
        root.schema.replace(text_format.Parse(text, schema_pb2.Schema()), "accepted-run", [], newest_number)

    return make


def test_data_are_held_against_the_schema_of_the_root(plan, keep_schema, root, tmp_path):
    staged = StagedData(tmp_path, "data.csv", ())
    without = plan()
    assert (without.root_schema, csv_to_serving(without, staged).root_schema) == (None, None)
    keep_schema()
    serve_version(root.serving, 5, "run")
    keep_schema()  # while version 5 serves
    made = plan()
    pipeline = csv_to_serving(made, staged)
    assert made.type_overrides.text == ("y",)
    assert pipeline.root_schema.exec_properties["schema_file"] == str(root.schema.file)
    assert pipeline.root_schema in pipeline.example_validator.upstream_nodes
    assert pipeline.root_schema not in pipeline.transform.upstream_nodes
    assert pipeline.example_validator.exec_properties["fixed_schema"] == 1
    resolved = pipeline.served_statistics.exec_properties[RESOLVER_CONFIG]
    assert resolved["accepted_run"] == "accepted-run"
    assert '"y"' in pipeline.example_gen.exec_properties["custom_config"].replace("\\", "")
    before, now = (
        json.loads(item.pusher.exec_properties["custom_config"])["model_fingerprint"]
        for item in (csv_to_serving(without, staged), pipeline)
    )
    assert before != now  # as the label is text now


def test_the_users_schema_goes_before_that_of_the_root(plan, keep_schema, tmp_path):
    keep_schema()
    file = tmp_path / "mine.pbtxt"
    file.write_text(SCHEMA.replace("BYTES", "INT"))
    made = plan(f"schema.path={file}")
    assert (made.root_schema, made.type_overrides.text) == (None, ())
    pipeline = csv_to_serving(made, StagedData(tmp_path, "data.csv", ()))
    assert pipeline.root_schema is None
    assert pipeline.example_validator.exec_properties["fixed_schema"] == 1


def test_a_schema_of_the_root_that_was_edited_wrongly_ends_a_run_before_it_begins(plan, keep_schema, root):
    keep_schema()
    root.schema.file.write_text(SCHEMA.replace("FLOAT", "DECIMAL"))
    with pytest.raises(BadInputError, match=r"schema\.pbtxt is not a Schema.*line 2, column .*DECIMAL"):
        plan()


def test_a_run_is_not_resumed_on_a_validation_that_does_not_count_any_more(killed, plan, keep_schema, root):
    records = root.records
    unfinished = killed.changed(code_fingerprint=code_fingerprint(plan().code))
    validated = (ComponentRecord("ExampleValidator", "finished", 1.0),)
    records.write(unfinished.changed(status="failed", is_bad_input=True, components=validated))
    with pytest.raises(BadInputError, match="ended because of its data, and would again"):
        plan(resume=True)
    records.write(unfinished)
    assert plan(resume=True).unfinished == unfinished
    keep_schema(SCHEMA.replace("BYTES", "INT"))
    with pytest.raises(BadInputError, match="schema of run accepted-run was accepted since run 2026"):
        plan(resume=True)
    records.write(unfinished.changed(started="2999-01-01T00:00:00+00:00"))
    assert plan(resume=True).unfinished is not None
    keep_schema(SCHEMA.replace("BYTES", "INT"), newest_number=3)
    records.write(unfinished.changed(started="2999-01-01T00:00:00+00:00", number=3))
    with pytest.raises(BadInputError, match="schema of run accepted-run was accepted since"):
        plan(resume=True)
    records.write(unfinished.changed(number=4))
    assert plan(resume=True).unfinished is not None


def test_the_schema_is_inferred_or_taken_from_a_file(plan, tmp_path):
    def schema_gen(*settings):
        return csv_to_serving(plan(*settings), StagedData(tmp_path, "data.csv", ())).schema_gen

    assert schema_gen().exec_properties["infer_feature_shape"] == 0
    assert schema_gen("schema.infer_feature_shape=true").exec_properties["infer_feature_shape"] == 1
    file = tmp_path / "schema.pbtxt"
    file.write_text('feature { name: "x" type: FLOAT } feature { name: "y" type: INT }')
    taken = schema_gen(f"schema.path={file}")
    assert (taken.id, taken.exec_properties["schema_file"]) == ("SchemaGen", str(file))


def test_a_schema_that_another_process_has_written_meanwhile(plan, keep_schema):
    made = plan()
    check_same_root_schema(made)
    keep_schema()
    with pytest.raises(BadInputError, match="was changed while the data were read"):
        check_same_root_schema(made)
    check_same_root_schema(plan())
