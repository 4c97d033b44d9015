import pytest
import yaml
from kfp import compiler, dsl

from pipelines.kubeflow.compile.containers import COMMAND, component_step, end_step, output_names, plan_step
from pipelines.kubeflow.compile.parameters import RuntimeParameter


def container(component, folder):
    file = folder / "a.yaml"
    compiler.Compiler().compile(component, str(file))
    specification = yaml.safe_load(file.read_text())
    (executor,) = specification["deploymentSpec"]["executors"].values()
    return executor["container"]


@pytest.mark.parametrize(("backend", "more"), [("kubeflow", []), ("vertex", ["--executor-input", "{{$}}"])])
def test_a_step_is_called_with_its_key_alone(tmp_path, backend, more):
    found = container(component_step("Pusher", "image:1", "/mnt/root", backend), tmp_path)
    assert tuple(found["command"]) == COMMAND
    assert found["args"] == [
        "Pusher", "--root", "/mnt/root", "--key", "{{$.inputs.parameters['key']}}", *more,
    ]  # fmt: skip


def test_plan_gives_each_step_its_key(tmp_path):
    parameters = [RuntimeParameter("trainer.train_steps", 5)]
    components = ["Write", "Train_steps", "1st"]
    step = plan_step("{}", components, parameters, "image:1", "/mnt/root")
    assert container(step, tmp_path)["args"] == [
        "Plan", "--root", "/mnt/root",
        "--run", "{{$.inputs.parameters['run']}}",
        "--config", "{}",
        "--parameter", "trainer.train_steps", "{{$.inputs.parameters['train_steps']}}",
        "--key-of", "Write", "{{$.outputs.parameters['write'].output_file}}",
        "--key-of", "Train_steps", "{{$.outputs.parameters['train_steps_'].output_file}}",
        "--key-of", "1st", "{{$.outputs.parameters['step_1st'].output_file}}",
    ]  # fmt: skip


def test_names_of_outputs_are_identifiers_that_differ():
    names = output_names(["Run", "CsvExampleGen", "csv_example_gen", "Import"], ["import_"])
    assert names == {
        "Run": "run_",
        "CsvExampleGen": "csv_example_gen",
        "csv_example_gen": "csv_example_gen_",
        "Import": "import__",  # `import` is a word of Python
    }


def test_the_exit_handler_has_no_input_but_the_run():
    component = end_step("image:1", "/mnt/root")
    assert list(component.component_spec.inputs) == ["run"]
    assert component.component_spec.outputs is None
    assert isinstance(component, type(dsl.container_component(_nothing)))


def _nothing():
    return dsl.ContainerSpec(image="image:1")
