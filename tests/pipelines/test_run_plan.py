import json

import pytest

from pipelines.data.staging import StagedData
from pipelines.errors import BadInputError
from pipelines.fingerprints import code_fingerprint
from pipelines.run_plan import RunRequest, plan_run
from pipelines.run_record import RunRecords


@pytest.fixture
def plan(data, tmp_path, display):
    """Returns a function that plans a run of the data; settings are those of `--set`."""

    def make(*settings, **request):
        request = {"root": tmp_path / "root", "data": str(data), "label": "y", **request}
        return plan_run(RunRequest(settings=settings, **request), display)

    return make


def test_a_plan_says_what_is_done_and_writes_nothing(plan, data, tmp_path, shown):
    made = plan("trainer.train_steps=7", enable_cache=False)
    assert made.root == tmp_path / "root"
    assert (made.config.name, made.profile.num_rows, made.code.train_steps) == ("data", 40, 7)
    assert (made.enable_cache, made.unfinished) == (False, None)
    assert shown.getvalue().splitlines() == [f"    checking {data}"]
    assert list(tmp_path.iterdir()) == [data]


def test_a_plan_defines_the_pipeline_below_its_root(plan, data, tmp_path):
    made = plan("pusher.keep=3", "name=trips", enable_cache=False)
    defined = made.define(StagedData(tmp_path, "data.csv", ()))
    pipeline = defined.pipeline
    assert pipeline.pipeline_info.pipeline_name == "trips"
    assert pipeline.pipeline_info.pipeline_root == str(tmp_path / "root" / "artifacts")
    assert not pipeline.enable_cache
    assert str(tmp_path / "root" / "serving") in defined.pusher.exec_properties["push_destination"]
    pushed = json.loads(defined.pusher.exec_properties["custom_config"])
    assert len(pushed.pop("model_fingerprint")) == 64
    assert pushed == {
        "keep": 3,
        "newer_than": 0,
        "taken_over": [],
        "skip_unchanged": True,
        "withdrawn": str(tmp_path / "root" / "withdrawn"),
    }
    assert json.loads(defined.evaluator.exec_properties["default_checks"])["confidence"] == 0.95
    assert '"auc"' in defined.evaluator.exec_properties["eval_config"].replace("\\", "")
    assert not (tmp_path / "root").exists()


def test_resume_takes_the_configuration_of_the_killed_run(killed, plan, data, tmp_path):
    unfinished = killed.changed(code_fingerprint=code_fingerprint(plan().code))
    RunRecords(tmp_path / "root").write(unfinished)
    resumed = plan(resume=True, data=None, label=None)
    assert resumed.unfinished == unfinished
    assert resumed.config.data.path == str(data)
    data.unlink()
    with pytest.raises(BadInputError, match=f"There is no file or folder {data}"):
        plan(resume=True, data=None, label=None)


def test_resume_without_an_unfinished_run_is_a_new_one(plan, shown):
    assert plan(resume=True).unfinished is None
    assert "! There is no unfinished run to resume; this is a new one." in shown.getvalue()


def test_resume_refuses_other_settings(killed, plan):
    with pytest.raises(BadInputError, match=r"started with trainer\.seed = 1; received 3\."):
        plan("trainer.seed=3", resume=True)
    with pytest.raises(BadInputError, match=r"trainer\.custom_config\.a = None; received 1\."):
        plan("trainer.custom_config.a=1", resume=True)


def test_resume_refuses_other_data(killed, plan, data):
    data.write_text(data.read_text().replace("1.5", "2.5"))
    with pytest.raises(BadInputError, match="have changed since run 20260102-030405 started"):
        plan(resume=True)


def test_resume_refuses_other_code(killed, plan):
    # Transform of that run may have finished: it would keep what the old preprocessing_fn made.
    with pytest.raises(BadInputError, match="code of the generic model has changed since run 2026"):
        plan(resume=True)


def test_a_root_that_is_a_file(plan, tmp_path):
    (tmp_path / "root").write_text("")
    with pytest.raises(BadInputError, match="root is not a folder that can be written to"):
        plan()


def test_a_root_that_would_be_read_as_a_pattern(plan, tmp_path):
    with pytest.raises(BadInputError, match=r"TFX would take '\[' for a file pattern"):
        plan(root=tmp_path / "root[1]")
    assert not (tmp_path / "root[1]").exists()


def test_what_is_asked_for_is_checked_before_anything_is_written(plan, tmp_path):
    for settings, message in (
        ({"beam.args": "['--nonsense=1']"}, "Beam has no option '--nonsense=1'"),
        ({"evaluator.label": "tips"}, "evaluator.label = 'tips': the generic model has no such"),
        ({"schema.path": "none.pbtxt"}, "none.pbtxt cannot be read"),
    ):
        with pytest.raises(BadInputError, match=message):
            plan(*(f"{key}={value}" for key, value in settings.items()))
    with pytest.raises(BadInputError, match=r"cannot be read: File name too long\. Check --root"):
        plan(root=tmp_path / ("x" * 300))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(BadInputError, match="symbolic link that leads nowhere"):
        plan(data=str(tmp_path / "loop"))
    with pytest.raises(BadInputError, match="Check --root"):
        plan(root=tmp_path / "loop")


def test_the_schema_is_inferred_or_taken_from_a_file(plan, tmp_path):
    def schema_gen(*settings):
        return plan(*settings).define(StagedData(tmp_path, "data.csv", ())).schema_gen

    assert schema_gen().exec_properties["infer_feature_shape"] == 0
    assert schema_gen("schema.infer_feature_shape=true").exec_properties["infer_feature_shape"] == 1
    file = tmp_path / "schema.pbtxt"
    file.write_text('feature { name: "x" type: FLOAT } feature { name: "y" type: INT }')
    taken = schema_gen(f"schema.path={file}")
    assert (taken.id, taken.exec_properties["schema_file"]) == ("SchemaGen", str(file))
