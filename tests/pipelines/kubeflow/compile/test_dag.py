import pytest

from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.dag import dag_of_csv, dag_of_definition

WITH_A_RESOLVER = """
def create_pipeline():
    write = Write(text=RuntimeParameter(name="text", ptype=str, default="ab"))
    latest = Resolver(
        strategy_class=LatestArtifactStrategy,
        examples=Channel(type=Examples, producer_component_id="Write"),
    ).with_id("latest")
    latest.add_upstream_node(write)
    one = Importer(source_uri="/mnt/pipelines/one", artifact_type=Examples).with_id("one")
    times = RuntimeParameter(name="times", ptype=int)
    copy = Copy(examples=latest.outputs["examples"], times=times)
    other = Copy(examples=one.outputs["result"]).with_id("Other")
    other.add_upstream_node(copy)
    return pipeline(other, copy, one, latest, write)
"""


def test_the_edges_are_those_of_the_definition(config_of):
    upstream = dag_of_csv(config_of()).upstream
    components = list(upstream)
    for number, component in enumerate(components):
        assert set(upstream[component]) <= set(components[:number])  # they can run in this order
    assert upstream["Trainer"] == ["SchemaGen", "Transform"]
    assert upstream["SchemaGen"] == ["StatisticsGen"]
    assert upstream["StatisticsGen"] == ["CsvExampleGen"]
    assert "Tuner" not in upstream
    curated = config_of(schema={"path": "/mnt/pipelines/schema.pbtxt"})
    assert dag_of_csv(curated).upstream["SchemaGen"] == []
    searched = dag_of_csv(config_of(tuner={"space": {"units": [8, 16]}})).upstream
    assert searched["Tuner"] == ["SchemaGen", "Transform"]
    assert "Tuner" in searched["Trainer"]
    tested = dag_of_csv(config_of(split={"test": 0.2})).upstream
    assert tested == {**upstream, "TestEvaluator": ["CsvExampleGen", "SchemaGen", "ServingCheck", "Trainer"]}


def definition(team, **parameters):
    source = {"file": str(team.file), "parameters": parameters}
    return dag_of_definition(TfxPipelineConfig(pipeline=source), team.load())


def test_a_pipeline_of_the_users_own_has_a_task_for_each_component(team):
    team.define(WITH_A_RESOLVER)
    dag = definition(team, times=2)
    assert dag.name == "team"
    # `Plan` makes what the Resolver and the Importer give; the tasks keep their order.
    assert dag.upstream == {"Write": [], "Copy": ["Write"], "Other": ["Copy"]}
    assert list(dag.upstream) == ["Write", "Copy", "Other"]


def test_runtime_parameters_have_the_types_that_the_definition_declares(team):
    team.define(WITH_A_RESOLVER)
    assert definition(team, times="7").parameters == {"text": "ab", "times": 7}
    assert definition(team, times=2, text="5").parameters == {"text": "5", "times": 2}
    for parameters, message in (
        ({}, "Give --param times=VALUE"),
        ({"times": "many"}, "--param times=many: the pipeline declares it as INT"),
        ({"times": 2, "time": 2}, r"--param time=2.*Its parameters: times, text"),
    ):
        with pytest.raises(BadInputError, match=message):
            definition(team, **parameters)
