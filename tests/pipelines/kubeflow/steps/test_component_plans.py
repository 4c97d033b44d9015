import pytest

from components.pusher.provenance import Provenance
from pipelines.data.staging import StagedData
from pipelines.definitions.csv_to_serving import csv_to_serving
from pipelines.kubeflow.steps.component_plans import component_plans
from pipelines.plan.run_plan import RunRequest, plan_run
from pipelines.root import Root
from tests.pushed_versions import write_version

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT presence { min_count: 1 } }
"""
MODULE = "def preprocessing_fn(inputs): ...\ndef trainer_fn(fn_args, schema): ...\n"


@pytest.fixture
def plans(data, tmp_path, display):
    def make(run_id="run-b", baseline_version=None, settings=()):
        request = RunRequest(
            root=Root(tmp_path / "root"), data=str(data), label="y", settings=settings
        )
        plan = plan_run(request, display)
        pipeline = csv_to_serving(plan, StagedData(data.parent, data.name, ()))
        return component_plans(plan, pipeline, run_id, baseline_version)

    return make


def test_a_plan_has_all_that_a_component_needs(plans, data):
    found = plans()
    example_gen = found["example_gen"]
    assert example_gen.executor["type"] == "BeamExecutableSpec"
    assert example_gen.parameters["parameters"]["input_base"]["fieldValue"]["stringValue"] == (
        str(data.parent)
    )
    assert example_gen.check["kind"] == "LabelCheck"
    assert found["trainer"].executor["type"] == "PythonClassExecutableSpec"
    assert found["trainer"].inputs["schema"] == "tfx.types.standard_artifacts.Schema"
    assert found["schema_gen"].check is None


def test_only_the_pusher_depends_on_the_run(plans):
    first, second = plans("run-b"), plans("run-c")
    assert {role for role in first if first[role] != second[role]} == {"pusher"}


def test_without_a_version_there_is_no_baseline(plans):
    found = plans()
    assert found["evaluator"].baselines == found["example_validator"].baselines == {}
    assert found["example_validator"].schema is None
    assert found["pusher"].push["baseline_version"] is None


def test_what_serves_and_the_schema_of_the_root_are_in_the_plans(plans, tmp_path):
    root = tmp_path / "root"
    for name in ("model", "statistics"):
        (root / "kept" / "run-a" / name).mkdir(parents=True)
    version = root / "serving" / "5"
    version.mkdir(parents=True)
    model = root / "kept" / "run-a" / "model"
    write_version(Provenance("run-a", str(model)), str(version), str(root / "serving"))
    Root(root).schema.file.parent.mkdir()
    Root(root).schema.file.write_text(SCHEMA)
    found = plans(baseline_version="5")
    assert found["evaluator"].baselines == {"baseline_model": "kept/run-a/model"}
    assert found["evaluator"].check["baseline_version"] == "5"
    assert found["example_validator"].baselines == {"baseline_statistics": "kept/run-a/statistics"}
    assert found["example_validator"].schema == SCHEMA
    assert found["pusher"].push["baseline_version"] == "5"
    assert found["trainer"].baselines == {}
    assert "root_schema" not in found
    module = tmp_path / "plans_module.py"
    module.write_text(MODULE)
    found = plans(settings=(f"module.file={module}", "trainer.warm_start=true"))
    assert found["trainer"].baselines == {"base_model": "kept/run-a/model"}
