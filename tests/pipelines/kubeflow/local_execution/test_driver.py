import pytest

from pipelines.kubeflow.local_execution.driver import (
    CompiledPipeline,
    TaskCache,
    cache_key,
    resolve_inputs,
    substitute,
)

TEXT = """
pipelineInfo: {name: taxi}
components:
  comp-a: {executorLabel: exec-a}
deploymentSpec:
  executors:
    exec-a: {container: {image: image}}
root:
  dag: {tasks: {a: {componentRef: {name: comp-a}}}}
  inputDefinitions:
    parameters:
      steps: {defaultValue: 5.0, parameterType: NUMBER_INTEGER}
      text: {defaultValue: x, parameterType: STRING}
"""
PLATFORM = """---
platforms:
  kubernetes:
    deploymentSpec:
      executors:
        exec-a: {activeDeadlineSeconds: 5}
"""


def test_it_is_read_from_its_two_documents():
    pipeline = CompiledPipeline.parse(TEXT + PLATFORM)
    task = pipeline.specification["root"]["dag"]["tasks"]["a"]
    component = pipeline.component(task)
    assert pipeline.name == "taxi"
    assert pipeline.container(component) == {"image": "image"}
    assert pipeline.pod(component) == {"activeDeadlineSeconds": 5}
    assert pipeline.parameters({"text": "y"}) == {"steps": 5.0, "text": "y"}
    assert CompiledPipeline.parse(TEXT).pod(component) == {}


COMPONENT = {"outputDefinitions": {"parameters": {"size": {"parameterType": "NUMBER_INTEGER"}}}}
CONTAINER = {"image": "image:1", "command": ["python"], "args": ["--key", "a"]}
POD = {"pvcMount": [{"constant": "claim", "mountPath": "/mnt"}]}
INPUTS = {"key": "run-1/abc"}


@pytest.mark.parametrize(
    ("inputs", "component", "container", "pod", "is_same"),
    [
        (INPUTS, COMPONENT, {**CONTAINER, "env": [{"name": "A"}]}, POD, True),
        ({"key": "run-2/abc"}, COMPONENT, CONTAINER, POD, False),
        (INPUTS, {"outputDefinitions": {}}, CONTAINER, POD, False),
        (INPUTS, COMPONENT, {**CONTAINER, "image": "image:2"}, POD, False),
        (INPUTS, COMPONENT, {**CONTAINER, "args": ["--key", "b"]}, POD, False),
        (INPUTS, COMPONENT, CONTAINER, {}, False),
    ],
)
def test_the_same_task_has_the_same_key(inputs, component, container, pod, is_same):
    key = cache_key(INPUTS, COMPONENT, CONTAINER, POD)
    assert (cache_key(inputs, component, container, pod) == key) is is_same


def test_outputs_are_kept(tmp_path):
    cache = TaskCache(tmp_path / "cache")
    outputs = {"size": 3, "text": "a"}
    assert cache.find("key") is None
    cache.add("key", outputs)
    assert TaskCache(tmp_path / "cache").find("key") == outputs
    assert cache.find("other") is None
    for damaged in ("{", "[]"):
        (tmp_path / "cache" / "key.json").write_text(damaged)
        assert cache.find("key") is None


def test_inputs_come_from_constants_from_the_dag_and_from_other_tasks():
    sources = {
        "constant": {"runtimeValue": {"constant": 3.0}},
        "run": {"runtimeValue": {"constant": "a {{$.pipeline_job_uuid}}"}},
        "given": {"componentInputParameter": "of_the_dag"},
        "made": {"taskOutputParameter": {"producerTask": "a", "outputParameterKey": "size"}},
    }
    kinds = {"constant": "NUMBER_INTEGER", "run": "STRING", "given": "NUMBER_DOUBLE", "made": "STRING"}
    parameters = {key: {"parameterType": kind} for key, kind in kinds.items()}
    task, component = {"inputs": {"parameters": sources}}, {"inputDefinitions": {"parameters": parameters}}
    inputs = resolve_inputs(task, component, {"of_the_dag": 2.0}, {"a": {"size": "big"}}, "run-5")
    assert inputs == {"constant": 3, "run": "a run-5", "given": 2.0, "made": "big"}
    assert isinstance(inputs["constant"], int)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--n={{$.inputs.parameters['n']}}", "--n=5"),
        ("{{$.inputs.parameters['text']}}", "it's"),
        ("{{$.inputs.parameters['flag']}}", "true"),
        ("{{$.outputs.parameters['size'].output_file}}", "/tmp/size"),
        ("plain", "plain"),
    ],
)
def test_placeholders_are_replaced_wherever_they_stand(argument, expected):
    inputs = {"n": 5, "text": "it's", "flag": True}
    assert substitute(["first", argument], inputs, {"size": "/tmp/size"}) == ["first", expected]
