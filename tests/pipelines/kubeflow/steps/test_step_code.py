import copy
from dataclasses import replace

import pytest

from pipelines.errors import RunFailedError
from pipelines.kubeflow.steps.step_code import check_code, code_of_step
from pipelines.plan.run_plan import RunRequest, plan_run
from pipelines.root import Root


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "code" / "model.py"
    file.parent.mkdir()
    file.write_text("def trainer_fn():\n    return 1\n")
    return file


@pytest.fixture
def code(data, tmp_path, display, module):
    request = RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y")
    return replace(plan_run(request, display).code, module_file=str(module))


@pytest.mark.parametrize("role", ["transform", "trainer"])
def test_a_module_that_was_edited_is_not_run(code, module, role):
    planned = code_of_step(role, code)
    check_code(planned, "Trainer")
    module.write_text("def trainer_fn():\n    return 2\n")
    with pytest.raises(
        RunFailedError, match=r"^the model's code changed after the step Plan"
    ) as caught:
        check_code(planned, "Trainer")
    assert caught.value.component == "Trainer"


def test_what_does_not_concern_a_component_is_not_looked_at(code, module):
    planned = {role: code_of_step(role, code) for role in ("statistics_gen", "example_gen")}
    module.write_text("def trainer_fn():\n    return 2\n")
    assert set(planned["statistics_gen"]["digests"]) == {"the libraries"}
    assert set(planned["example_gen"]["digests"]) == {"the libraries", "the package components"}
    for one in planned.values():
        check_code(one, "any")


@pytest.mark.parametrize("part", ["the libraries", "the package estimator_core"])
def test_another_image_is_seen(code, part):
    planned = copy.deepcopy(code_of_step("trainer", code))
    planned["digests"][part] = "of another image"
    with pytest.raises(RunFailedError, match=rf"^{part} changed.*tag of its own"):
        check_code(planned, "Trainer")
