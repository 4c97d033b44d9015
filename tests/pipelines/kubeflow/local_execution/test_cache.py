import pytest

from pipelines.kubeflow.local_execution.cache import TaskCache, cache_key
from pipelines.kubeflow.local_execution.inputs import Values

COMPONENT = {
    "outputDefinitions": {
        "artifacts": {"model": {"artifactType": {"schemaTitle": "system.Model"}}},
        "parameters": {"size": {"parameterType": "NUMBER_INTEGER"}},
    }
}
CONTAINER = {"image": "image:1", "command": ["python"], "args": ["{{$}}", "a"]}
POD = {"pvcMount": [{"constant": "claim", "mountPath": "/mnt"}]}
INPUTS = Values({"plan": "abc"}, {"data": {"name": "artifacts/1", "uri": "s3://b/1"}})


def test_the_same_task_has_the_same_key():
    moved = Values({"plan": "abc"}, {"data": {"name": "artifacts/1", "uri": "s3://b/2"}})
    key = cache_key(INPUTS, COMPONENT, CONTAINER, POD)
    assert cache_key(moved, COMPONENT, CONTAINER, POD) == key
    assert cache_key(INPUTS, COMPONENT, {**CONTAINER, "env": [{"name": "A"}]}, POD) == key


@pytest.mark.parametrize(
    ("inputs", "component", "container", "pod"),
    [
        (Values({"plan": "abd"}, INPUTS.artifacts), COMPONENT, CONTAINER, POD),
        (Values({"plan": "abc"}, {"data": {"name": "artifacts/2"}}), COMPONENT, CONTAINER, POD),
        (INPUTS, {"outputDefinitions": {}}, CONTAINER, POD),
        (INPUTS, COMPONENT, {**CONTAINER, "image": "image:2"}, POD),
        (INPUTS, COMPONENT, {**CONTAINER, "args": ["{{$}}", "b"]}, POD),
        (INPUTS, COMPONENT, CONTAINER, {}),
    ],
)
def test_another_task_has_another_key(inputs, component, container, pod):
    assert cache_key(inputs, component, container, pod) != cache_key(
        INPUTS, COMPONENT, CONTAINER, POD
    )


def test_outputs_are_kept(tmp_path):
    cache = TaskCache(tmp_path / "cache")
    outputs = Values({"size": 3}, {"model": {"name": "artifacts/9", "uri": "s3://b/9"}})
    assert cache.find("key") is None
    cache.add("key", outputs)
    assert TaskCache(tmp_path / "cache").find("key") == outputs
    assert cache.find("other") is None
