import pytest

from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.config.toml import flat_settings
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.parameters import (
    configuration_of_run,
    definition_parameters,
    names_on_kubeflow,
    runtime_parameters,
)


def test_parameters_that_are_always_there_and_those_that_are_asked_for(config_of):
    found = {item.name: item.default for item in runtime_parameters(config_of())}
    assert found == {"data_path": "/mnt/pipelines/data/taxi.csv", "train_steps": 0, "eval_steps": 0}
    config = config_of({"parameters": ["trainer.seed"]}, trainer={"early_stopping": False, "train_steps": 70})
    found = runtime_parameters(config, ["trainer.early_stopping", "trainer.seed"])
    assert [(item.name, item.default) for item in found] == [
        ("data_path", "/mnt/pipelines/data/taxi.csv"),
        ("train_steps", 70),
        ("eval_steps", 0),
        ("trainer_seed", 1),
        ("trainer_early_stopping", False),
    ]


@pytest.mark.parametrize(
    ("columns", "keys", "message"),
    [
        ({}, ["trainer.sed"], "Did you mean trainer.seed"),
        ({}, ["trainer.n_trees"], "Set trainer.n_trees"),
        ({}, ["data.exclude"], "is a list"),
        (
            {"a b": "category"},
            ["columns.a b"],
            r"columns.a b would be the parameter 'columns_a b'.*letters, digits",
        ),
        ({"größe": "number"}, ["columns.größe"], "'columns_größe'"),
        (
            {"a.b": "category", "a_b": "number"},
            ["columns.a.b", "columns.a_b"],
            "columns.a.b and columns.a_b would both be the parameter 'columns_a_b'",
        ),
    ],
)
def test_what_can_be_no_parameter(config_of, columns, keys, message):
    with pytest.raises(BadInputError, match=message):
        runtime_parameters(config_of(columns=columns), keys)


def test_a_column_may_have_dots_in_its_name(config_of):
    columns = {"c": "number", "c.d": "category", "c.d.e": "number"}
    found = {item.name for item in runtime_parameters(config_of(columns=columns), ["columns.c.d"])}
    assert "columns_c_d" in found
    config = given(config_of, ("columns.c.d", "number"), columns=columns)
    assert config.columns == {**columns, "c.d": "number"}


def given(config_of, *pairs, **sections):
    return configuration_of_run(config_of(**sections).model_dump_json(), pairs)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("data.path", "/mnt/pipelines/data/123", "/mnt/pipelines/data/123"),
        ("data.label", "12", "12"),
        ("trainer.train_steps", "500", 500),
        ("trainer.train_steps", "500.0", 500),  # KFP's numbers are those of JSON
        ("trainer.eval_steps", "0", None),
        ("trainer.early_stopping", "false", False),
    ],
)
def test_a_run_has_what_it_is_given(config_of, key, text, value):
    config = given(config_of, (key, text), ("trainer.seed", "7"))
    assert flat_settings(config.model_dump())[key] == value
    assert config.trainer.seed == 7


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("trainer.train_steps", "many", "trainer.train_steps takes a number. Received: 'many'"),
        ("trainer.train_steps", "-5", r"trainer.train_steps = -5"),
        ("trainer.sed", "7", r"trainer.sed is not a key.*trainer.sed='7'"),  # it was not compiled
    ],
)
def test_what_the_key_does_not_take_is_refused(config_of, key, value, message):
    with pytest.raises(BadInputError, match=message):
        given(config_of, (key, value))


def own(**parameters):
    return TfxPipelineConfig.model_validate({"pipeline": {"file": "team.py", "parameters": parameters}})


def test_runtime_parameters_of_the_users_own_pipeline_have_names_that_kubeflow_takes():
    config = own(**{"train-steps": 5, "rate": 0.5})
    found = definition_parameters(config)
    assert [(item.name, item.default) for item in found] == [("train_steps", 5), ("rate", 0.5)]
    assert names_on_kubeflow({"train-steps": "7"}) == {"train_steps": "7"}
    of_run = configuration_of_run(
        config.model_dump_json(),
        [("pipeline.parameters.train-steps", "7.0"), ("pipeline.parameters.rate", "2")],
    )
    assert of_run.pipeline.parameters == {"train-steps": 7, "rate": 2}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"run": "a"}, "^RuntimeParameter: run would be the parameter 'run'.*another name"),
        ({"class": "a"}, "'class'. A parameter's name .* not a Python keyword"),
        ({"1st": "a"}, "begins with a letter"),
        ({"a-b": 1, "a_b": 2}, "^RuntimeParameter: a-b and a_b would both be.*another name"),
    ],
)
def test_a_name_of_a_runtime_parameter_that_kubeflow_refuses(parameters, message):
    with pytest.raises(BadInputError, match=message):
        definition_parameters(own(**parameters))
