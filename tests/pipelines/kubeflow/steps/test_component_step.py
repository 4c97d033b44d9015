import components  # noqa: I001  Before TFX: makes TFDV importable.

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.orchestration.portable.beam_executor_operator import BeamExecutorOperator
from tfx.types.standard_artifacts import ExampleStatistics

from components.errors import SettingError
from pipelines.errors import RunFailedError
from pipelines.kubeflow.component_plan import ComponentPlan
from pipelines.kubeflow.steps import component_step
from pipelines.kubeflow.steps.artifacts import metadata_of
from pipelines.kubeflow.steps.component_step import read_inputs, run_component
from pipelines.kubeflow.steps.kept_findings import KeptFindings
from pipelines.kubeflow.steps.record_steps import end_run
from pipelines.kubeflow.steps.step_call import StepCall
from pipelines.kubeflow.training.training_job import JOB_KEY
from pipelines.root import Root
from pipelines.steps.causes import is_setting_error

SCHEMA = 'feature { name: "x" type: FLOAT }\n'
TYPES = "tfx.types.standard_artifacts"


@pytest.fixture
def importing(tmp_path):
    """The plan of an ImportSchemaGen, which copies a file, and the arguments of its step."""
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    executor = "tfx.components.schema_gen.import_schema_gen.executor.Executor"
    plan = ComponentPlan(
        component="SchemaGen",
        executor={"type": "PythonClassExecutableSpec", "spec": {"classPath": executor}},
        parameters={
            "parameters": {
                "schema_file": {"fieldValue": {"stringValue": str(tmp_path / "schema.pbtxt")}}
            }
        },
        fingerprint="",
        outputs={"schema": f"{TYPES}.Schema"},
    )
    declared = {"artifacts": [{"name": "schema", "uri": "minio://b/schema"}]}
    call = StepCall(
        Root(tmp_path / "root"),
        {"outputs": {"artifacts": {"schema": declared}, "outputFile": "/out"}},
        {},
        {"schema": str(tmp_path / "minio" / "b" / "schema")},
    )
    return call, plan


def test_a_component_writes_where_the_launcher_looks(importing):
    call, plan = importing
    metadata = run_component(call, plan, KeptFindings())
    assert (Path(call.outputs["schema"]) / "schema.pbtxt").read_text() == SCHEMA
    (artifact,) = metadata["artifacts"]["schema"]["artifacts"]
    assert artifact["uri"] == "minio://b/schema"
    json.dumps(metadata)


def test_a_check_ends_the_run_when_the_outputs_are_there(importing, tmp_path):
    statistics = ExampleStatistics()
    statistics.split_names = '["train", "eval"]'
    sizes = statistics_pb2.DatasetFeatureStatisticsList()
    sizes.datasets.add(num_examples=5)
    for split, content in (
        ("train", sizes),
        ("eval", statistics_pb2.DatasetFeatureStatisticsList()),
    ):
        folder = tmp_path / "statistics" / f"Split-{split}"
        folder.mkdir(parents=True)
        (folder / "FeatureStats.pb").write_bytes(content.SerializeToString())
    statistics.uri = str(tmp_path / "statistics")
    from pipelines.checks.component_checks import check_from_json

    check = check_from_json({"kind": "SplitCheck", "component": "CsvExampleGen"})
    with pytest.raises(RunFailedError, match="no row fell into the split 'eval'"):
        check({"statistics": [statistics]}, KeptFindings(), tmp_path)
    call, plan = importing
    asks_for_models = replace(plan, check={"kind": "ModelCheck"})
    with pytest.raises(KeyError):  # there are none: the check runs on these outputs
        run_component(call, asks_for_models, KeptFindings())


def test_options_of_beam_go_before_those_of_the_plan(importing, monkeypatch):
    call, plan = importing
    given = []

    def run_executor(operator, execution_info):
        given.extend(part.value.string_value for part in operator.beam_pipeline_args)
        return SimpleNamespace(output_artifacts={})

    monkeypatch.setattr(BeamExecutorOperator, "run_executor", run_executor)
    planned = [{"value": {"stringValue": "--runner=DirectRunner"}}]
    spec = {"pythonExecutorSpec": plan.executor["spec"], "beamPipelineArgsPlaceholders": planned}
    beam = replace(plan, executor={"type": "BeamExecutableSpec", "spec": spec})
    run_component(replace(call, beam_options=("--a=1", "--b=2")), beam, KeptFindings())
    assert given == ["--runner=DirectRunner", "--a=1", "--b=2"]  # of equal ones the last counts


def test_the_files_of_a_training_are_known_by_their_run(importing, monkeypatch):
    call, plan = importing
    monkeypatch.setenv("KFP_RUN_ID", "run-1")
    plan.parameters["parameters"][JOB_KEY] = {"fieldValue": {"stringValue": "{}"}}

    def execute(*arguments):
        raise RunFailedError("Trainer", "it broke")

    monkeypatch.setattr(component_step, "execute_component", execute)
    with pytest.raises(RunFailedError, match="it broke"):
        run_component(call, plan, KeptFindings())
    assert len(list(call.root.training.glob("*"))) == 1  # for the next try
    end_run(call.root, "run-2")
    assert len(list(call.root.training.glob("*"))) == 1
    end_run(call.root, "run-1")
    assert not list(call.root.training.glob("*"))


@pytest.fixture
def reading(tmp_path):
    """A folder of a CSV, the plan of the CsvExampleGen that reads it, and the arguments of its step."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.csv").write_text("x,y\n1,2\n")
    digest = hashlib.sha256((folder / "a.csv").read_bytes()).hexdigest()
    example_gen = components.CsvExampleGen(str(folder), files={"a.csv": digest})
    path = f"{type(example_gen).EXECUTOR_SPEC.executor_class.__module__}.Executor"
    plan = ComponentPlan(
        component="CsvExampleGen",
        executor={
            "type": "BeamExecutableSpec",
            "spec": {"pythonExecutorSpec": {"classPath": path}},
        },
        parameters={
            "parameters": {
                key: {
                    "fieldValue": {"intValue" if isinstance(value, int) else "stringValue": value}
                }
                for key, value in example_gen.exec_properties.items()
                if value is not None
            }
        },
        fingerprint="",
        outputs={"examples": f"{TYPES}.Examples"},
    )
    declared = {"artifacts": [{"name": "examples", "uri": "minio://b/examples"}]}
    call = StepCall(
        Root(tmp_path / "root"),
        {"outputs": {"artifacts": {"examples": declared}, "outputFile": "/out"}},
        {},
        {"examples": str(tmp_path / "minio" / "b" / "examples")},
    )
    return folder, call, plan


def test_data_that_changed_since_the_plan_are_not_read(reading):
    folder, call, plan = reading
    run_component(call, plan, KeptFindings())
    (folder / "a.csv").write_text("x,y\n1,3\n")
    with pytest.raises(Exception, match=r"a\.csv was changed after") as caught:
        run_component(call, plan, KeptFindings())
    assert is_setting_error(caught.value)


def test_data_that_came_after_the_plan_fail_the_step(reading):
    folder, call, plan = reading
    (folder / "b.csv").write_text("x,y\n1,3\n")
    with pytest.raises(SettingError, match=r"b\.csv has come after"):
        run_component(call, plan, KeptFindings())


def test_the_baseline_and_the_schema_of_the_root_come_from_the_plan(tmp_path):
    statistics = ExampleStatistics()
    statistics.split_names = '["train"]'
    kept = tmp_path / "root" / "kept" / "run-a" / "statistics"
    kept.mkdir(parents=True)
    kept.with_name("statistics.metadata.json").write_text(json.dumps(metadata_of(statistics)))
    plan = ComponentPlan(
        component="ExampleValidator",
        executor={},
        parameters={},
        fingerprint="",
        inputs={
            "statistics": f"{TYPES}.ExampleStatistics",
            "schema": f"{TYPES}.Schema",
            "baseline_statistics": f"{TYPES}.ExampleStatistics",
        },
        baselines={"baseline_statistics": "kept/run-a/statistics"},
        schema=SCHEMA,
    )
    given = {"artifacts": [{"name": "artifacts/1", "type": {}, "metadata": {}}]}
    call = StepCall(
        Root(tmp_path / "root"),
        {"inputs": {"artifacts": {"statistics": given, "schema": given}}},
        {"statistics": "/minio/statistics", "schema": "/minio/schema"},
    )
    inputs = read_inputs(call, plan, tmp_path)
    assert inputs["statistics"][0].uri == "/minio/statistics"
    assert inputs["baseline_statistics"][0].uri == str(kept)
    assert inputs["baseline_statistics"][0].split_names == '["train"]'
    (file,) = Path(inputs["schema"][0].uri).iterdir()
    assert file.read_text() == SCHEMA
    without = read_inputs(call, replace(plan, schema=None, baselines={}), tmp_path)
    assert without["schema"][0].uri == "/minio/schema"
    assert "baseline_statistics" not in without
