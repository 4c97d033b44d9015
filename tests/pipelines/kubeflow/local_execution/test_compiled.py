import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.local_execution.compiled import CompiledPipeline

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
    assert CompiledPipeline.parse(TEXT).pod(component) == {}


def test_parameters_have_defaults_and_no_others_are_taken():
    pipeline = CompiledPipeline.parse(TEXT)
    assert pipeline.parameters({"text": "y"}) == {"steps": 5.0, "text": "y"}
    with pytest.raises(BadInputError, match=r"no such parameter.*steps, text"):
        pipeline.parameters({"step": 6})
