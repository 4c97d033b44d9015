import os
from dataclasses import replace

import pytest

from pipelines.kubeflow.component_plan import (
    ComponentPlan,
    read_component_plan,
    write_component_plan,
)
from pipelines.root import Root

PLAN = ComponentPlan(
    component="Trainer",
    executor={"type": "PythonClassExecutableSpec", "spec": {"classPath": "a.B"}},
    parameters={"parameters": {"b": {"x": 1}, "a": {"x": 2}}},
    fingerprint="code-data",
    inputs={"examples": "a.Examples"},
    check={"kind": "ModelCheck"},
)


def test_a_plan_is_named_after_its_content(tmp_path):
    name = write_component_plan(Root(tmp_path), PLAN)
    assert len(name) == 64
    other_order = {"parameters": {"a": {"x": 2}, "b": {"x": 1}}}
    assert write_component_plan(Root(tmp_path), replace(PLAN, parameters=other_order)) == name
    assert read_component_plan(Root(tmp_path), name) == PLAN
    assert [file.name for file in (tmp_path / "plans").iterdir()] == [f"{name}.json"]


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprint": "other-data"},
        {"check": None},
        {"baselines": {"model": "kept/1/model"}},
        {"schema": "feature {}"},
        {"executor": {}},
    ],
)
def test_the_cache_sees_each_change(tmp_path, changes):
    assert write_component_plan(Root(tmp_path), replace(PLAN, **changes)) != write_component_plan(
        Root(tmp_path), PLAN
    )


def test_a_root_that_the_step_does_not_share(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"on a volume that every step mounts.*Received"):
        read_component_plan(Root(tmp_path), "0" * 64)


def test_a_plan_that_is_needed_again_is_as_new(tmp_path):
    plan = ComponentPlan("Trainer", {}, {}, "")
    file = tmp_path / "plans" / f"{write_component_plan(Root(tmp_path), plan)}.json"
    os.utime(file, (1000, 1000))
    write_component_plan(Root(tmp_path), plan)
    assert file.stat().st_mtime > 1000
