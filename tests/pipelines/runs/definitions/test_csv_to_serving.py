import dataclasses
import json

import pytest
from tfx.dsl.compiler import compiler
from tfx.dsl.components.common.resolver import RESOLVER_CONFIG
from tfx.utils.dependency_utils import make_beam_dependency_flags

import components
from pipelines.data.staging import StagedData
from pipelines.runs.definitions.csv_to_serving import csv_to_serving
from tests.pipelines.root.test_records import RECORD
from tests.pushed_versions import serve_version


@pytest.fixture
def define(plan, tmp_path):
    def make(*settings, beam_args=()):
        return csv_to_serving(plan(*settings), StagedData(tmp_path, "part-*.csv", ()), beam_args)

    return make


def roles(pipeline):
    """Returns the components by role."""
    return {
        field.name: getattr(pipeline, field.name)
        for field in dataclasses.fields(pipeline)
        if field.name != "pipeline" and getattr(pipeline, field.name) is not None
    }


def test_each_component_of_the_pipeline_has_one_role_and_waits_for_others(define):
    pipeline = define()
    assert set(roles(pipeline).values()) == set(pipeline.pipeline.components)
    assert len(pipeline.pipeline.components) == len(roles(pipeline)) == 11
    for role, kind in (
        ("trainer", components.Trainer),
        ("evaluator", components.Evaluator),
        ("pusher", components.Pusher),
        ("transform", components.Transform),
        ("served_model", components.Resolver),
    ):
        assert isinstance(getattr(pipeline, role), kind)
    # Those that take time wait for each other, so a runner gains nothing by running some at a time: it could
    # only do so for the two resolvers.
    waits_for = {
        role: {other for other, node in roles(pipeline).items() if node in component.upstream_nodes}
        for role, component in roles(pipeline).items()
    }
    assert waits_for == {
        "example_gen": set(),
        "statistics_gen": {"example_gen"},
        "schema_gen": {"statistics_gen"},
        "served_statistics": set(),
        "example_validator": {"statistics_gen", "schema_gen", "served_statistics"},
        "transform": {"example_gen", "schema_gen", "example_validator"},
        "served_model": set(),
        "trainer": {"transform", "schema_gen"},
        "evaluator": {"example_gen", "schema_gen", "served_model", "trainer"},
        "serving_check": {"example_gen", "trainer", "evaluator"},
        "pusher": {"trainer", "evaluator", "serving_check"},
    }
    # The Evaluator sees raw examples, and the Trainer transformed ones.
    assert pipeline.evaluator.inputs["examples"] is pipeline.example_gen.outputs["examples"]
    assert pipeline.trainer.inputs["examples"] is pipeline.transform.outputs["transformed_examples"]


def test_the_settings_reach_the_components(define, tmp_path):
    pipeline = define("trainer.train_steps=17", beam_args=("--experiments=one",))
    assert pipeline.example_gen.exec_properties["input_base"] == str(tmp_path)
    assert "part-*.csv" in pipeline.example_gen.exec_properties["input_config"]
    assert '"num_steps": 17' in pipeline.trainer.exec_properties["train_args"]
    pushed = json.loads(pipeline.pusher.exec_properties["custom_config"])
    assert len(pushed.pop("model_fingerprint")) == 64
    assert pushed == {
        "keep": None, "newer_than": 0, "taken_over": [], "skip_unchanged": True,
        "withdrawn": str(tmp_path / "root" / "withdrawn"),
    }  # fmt: skip
    args = pipeline.pipeline.beam_pipeline_args
    assert "--experiments=one" in args
    assert args[-1] == "--beam_plugins=components.tfx.compat"
    assert make_beam_dependency_flags(args) == args  # TFX packs nothing


def test_the_trainer_starts_from_the_model_that_serves_only_if_it_is_to(define, tmp_path):
    def base_and_required(*given):
        pipeline = define(f"module.file={module}", "evaluator.metrics=['auc']", *given)
        base = pipeline.trainer.inputs.get("base_model")
        served = pipeline.served_model
        assert base in (None, served.outputs["model"])
        return base is not None, served.exec_properties[RESOLVER_CONFIG]["required"]

    module = tmp_path / "warm_module.py"
    module.write_text("def preprocessing_fn(inputs): ...\ndef trainer_fn(fn_args, schema): ...\n")
    off = "evaluator.default_checks=false"
    bound = 'evaluator.thresholds=[{metric="auc", lower=0.6}]'
    assert base_and_required(off, bound) == (False, False)
    assert base_and_required(off, bound, "trainer.warm_start=true") == (True, True)


def test_the_default_checks_reach_the_evaluator_and_need_the_model_that_serves(define):
    def settings(*given):
        pipeline = define(*given)
        checks = json.loads(pipeline.evaluator.exec_properties.get("default_checks") or "null")
        strategy = pipeline.served_model.exec_properties[RESOLVER_CONFIG]
        return checks, strategy["required"]

    checks, required = settings("evaluator.confidence=0.9")
    assert (checks["problem_type"], checks["confidence"], required) == ("binary", 0.9, True)
    off = "evaluator.default_checks=false"
    bound = 'evaluator.thresholds=[{metric = "auc", %s}]'
    assert settings(off, bound % "lower = 0.6") == (None, False)
    assert settings(off, bound % "max_regression = 0.1") == (None, True)


def test_a_cluster_is_part_of_what_the_trainer_is_cached_by(define):
    def parameters(*settings):
        pipeline = define(*settings)
        nodes = [node.pipeline_node for node in compiler.Compiler().compile(pipeline.pipeline).nodes]
        (trainer,) = (node for node in nodes if node.node_info.id == pipeline.trainer.id)
        return {name: value.field_value.string_value for name, value in trainer.parameters.parameters.items()}

    alone = parameters()
    two = parameters("trainer.workers=2", "trainer.ps=1")
    assert "cluster" not in alone
    assert json.loads(two.pop("cluster")) == {"workers": 2, "ps": 1, "evaluator": False}
    assert two == alone
    evaluated = parameters("trainer.workers=2", "trainer.ps=1", "trainer.evaluator=true")
    assert json.loads(evaluated["cluster"]) == {"workers": 2, "ps": 1, "evaluator": True}


def test_splits_and_columns_reach_example_gen(define, plan, data, tmp_path):
    # The column that divides is no feature but where it is said to be one.
    groups = ("split.by=column", "split.column=x", "columns.x=number")
    properties = define().example_gen.exec_properties
    assert "single_split" in properties["input_config"]
    assert "partition_feature_name" not in properties["output_config"]
    grouped = define(*groups).example_gen.exec_properties
    assert "NA" in grouped["custom_config"]
    output = json.loads(grouped["output_config"])["split_config"]
    assert output["partition_feature_name"] == "x"
    assert [(part["name"], part["hash_buckets"]) for part in output["splits"]] == [("train", 2), ("eval", 1)]
    data.write_text("zip,y\n" + "".join(f"{row % 9:05d},{row % 2}\n" for row in range(60)))
    made = plan()
    parts = (("train", "train/*.csv"), ("eval", "eval/*.csv"))
    properties = csv_to_serving(made, StagedData(tmp_path, "*.csv", (), parts)).example_gen.exec_properties
    assert "train/*.csv" in properties["input_config"]
    assert "eval/*.csv" in properties["input_config"]
    assert "zip" in properties["custom_config"]
    assert "y=integer" in properties["custom_config"]  # the cells were read once for it
    copies = StagedData(tmp_path, "*.csv", ("rows are left out",), parts)
    assert "y=integer" not in csv_to_serving(made, copies).example_gen.exec_properties["custom_config"]


def test_only_the_test_evaluator_reads_the_split_that_tests(define):
    assert define().test_evaluator is None
    pipeline = define("split.test=0.2", "evaluator.metrics=['auc']", "tuner.trials=2")
    assert set(roles(pipeline).values()) == set(pipeline.pipeline.components)
    output = json.loads(pipeline.example_gen.exec_properties["output_config"])["split_config"]
    # A fifth tests; two thirds of the others train.
    assert {part["name"]: part["hash_buckets"] for part in output["splits"]} == {
        "train": 8, "eval": 4, "test": 3,
    }  # fmt: skip
    examples = pipeline.example_gen.outputs["examples"]
    reading = {role for role, node in roles(pipeline).items() if examples in node.inputs.values()}
    assert reading == {"statistics_gen", "transform", "evaluator", "serving_check", "test_evaluator"}
    assert json.loads(pipeline.statistics_gen.exec_properties["exclude_splits"]) == ["test"]
    transformed = json.loads(pipeline.transform.exec_properties["splits_config"])
    assert transformed == {"analyze": ["train"], "transform": ["train", "eval"]}
    for evaluating in (pipeline.evaluator, pipeline.serving_check):  # whose default is eval
        assert json.loads(evaluating.exec_properties.get("example_splits") or "null") is None
    tested = pipeline.test_evaluator
    assert (tested.id, json.loads(tested.exec_properties["example_splits"])) == ("TestEvaluator", ["test"])
    (specs,) = json.loads(tested.exec_properties["eval_config"])["metrics_specs"]
    assert [metric["class_name"] for metric in specs["metrics"]] == ["AUC", "ExampleCount"]
    assert pipeline.serving_check in tested.upstream_nodes
    assert not tested.downstream_nodes


def test_a_search_gives_the_trainer_its_hyperparameters(define, data):
    data.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(400)))
    assert define().tuner is None
    pipeline = define("tuner.trials=7")
    tuner, trainer = pipeline.tuner, pipeline.trainer
    assert set(roles(pipeline).values()) == set(pipeline.pipeline.components)
    assert trainer.inputs["hyperparameters"].producer_component_id == tuner.id == "Tuner"
    for key in ("custom_config", "train_args", "eval_args", "trainer_fn", "user_code"):
        assert tuner.exec_properties[key] == trainer.exec_properties[key]
    settings = components.TunerSettings.from_json(tuner.exec_properties["tuner_settings"])
    assert (settings.trials, settings.own_validation) == (7, True)


def test_cells_are_parsed_in_the_formats_of_the_plan_and_of_the_data_to_compare_with(define, data, root):
    rows = [f"${number}.50,2024-01-{1 + number % 28:02},{number % 2}" for number in range(60)]
    data.write_text("\n".join(["price,day,y", *rows]) + "\n")
    pipeline = define()
    parsed = components.ParsedColumns.from_json(pipeline.statistics_gen.exec_properties["parsed_columns"])
    assert {name: [*formats] for name, formats in parsed.formats.items()} == {
        "price": ["amounts of money (USD)"],
        "day": ["dates (iso)"],
    }
    for settings, moving in (((), []), (('example_validator.moving=["day"]',), ["day", "day"])):
        assert json.loads(define(*settings).example_validator.exec_properties["moving"]) == moving
    serve_version(root.serving, 5, "run-5")
    kilograms = {"name": "price", "kind": "number", "number_format": {"unit": "kg"}}
    config = {"name": "data", "data": {"path": str(data), "label": "y"}}
    served = RECORD.changed(run_id="run-5", name="data", status="pushed", config=config, checks=())
    root.records.write(served.changed(columns=(kilograms,)))
    properties = define().statistics_gen.exec_properties
    formats = components.ParsedColumns.from_json(properties["parsed_columns"]).formats
    assert [*formats["price"]] == ["amounts of money (USD)", "numbers in kg"]
