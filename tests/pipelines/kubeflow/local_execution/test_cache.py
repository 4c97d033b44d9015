import pytest

from pipelines.kubeflow.local_execution.cache import TaskCache, cache_key

COMPONENT = {"outputDefinitions": {"parameters": {"size": {"parameterType": "NUMBER_INTEGER"}}}}
CONTAINER = {"image": "image:1", "command": ["python"], "args": ["--key", "a"]}
POD = {"pvcMount": [{"constant": "claim", "mountPath": "/mnt"}]}
INPUTS = {"key": "run-1/abc"}


def test_the_same_task_has_the_same_key():
    key = cache_key(INPUTS, COMPONENT, CONTAINER, POD)
    assert cache_key(INPUTS, COMPONENT, {**CONTAINER, "env": [{"name": "A"}]}, POD) == key


@pytest.mark.parametrize(
    ("inputs", "component", "container", "pod"),
    [
        ({"key": "run-2/abc"}, COMPONENT, CONTAINER, POD),
        (INPUTS, {"outputDefinitions": {}}, CONTAINER, POD),
        (INPUTS, COMPONENT, {**CONTAINER, "image": "image:2"}, POD),
        (INPUTS, COMPONENT, {**CONTAINER, "args": ["--key", "b"]}, POD),
        (INPUTS, COMPONENT, CONTAINER, {}),
    ],
)
def test_another_task_has_another_key(inputs, component, container, pod):
    assert cache_key(inputs, component, container, pod) != cache_key(
        INPUTS, COMPONENT, CONTAINER, POD
    )


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
