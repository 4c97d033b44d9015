import yaml
from kfp import compiler, dsl

from pipelines.kubeflow.compile.containers import COMMAND, component_step, end_step
from pipelines.kubeflow.compile.dag import Step

PUSHER = Step(
    "pusher",
    "Pusher",
    {"model": ("trainer", "model")},
    {"pushed_model": "tfx.types.standard_artifacts.PushedModel"},
)


def test_a_step_is_called_with_all_that_it_has(tmp_path):
    component = component_step(
        PUSHER, {"model": "tfx.types.standard_artifacts.Model"}, "image:1", "/mnt/root"
    )
    compiler.Compiler().compile(component, str(tmp_path / "a.yaml"))
    specification = yaml.safe_load((tmp_path / "a.yaml").read_text())
    (container,) = (
        executor["container"] for executor in specification["deploymentSpec"]["executors"].values()
    )
    assert tuple(container["command"]) == COMMAND
    assert container["args"] == [
        "Pusher", "--root", "/mnt/root",
        "--plan", "{{$.inputs.parameters['plan']}}",
        "--run", "{{$.inputs.parameters['run']}}",
        "--outcome-file", "{{$.outputs.parameters['outcome'].output_file}}",
        "--input", "model", "{{$.inputs.artifacts['model'].path}}",
        "--output", "pushed_model", "{{$.outputs.artifacts['pushed_model'].path}}",
        "--findings", "{{$.outputs.parameters['findings'].output_file}}",
        "--executor-input", "{{$}}",
    ]  # fmt: skip
    inputs = specification["components"]["comp-pusher"]["inputDefinitions"]
    assert inputs["artifacts"]["model"]["artifactType"]["schemaTitle"] == "system.Model"


def test_the_exit_handler_has_no_input_but_the_run():
    component = end_step("image:1", "/mnt/root")
    assert list(component.component_spec.inputs) == ["run"]
    assert component.component_spec.outputs is None
    assert isinstance(component, type(dsl.container_component(_nothing)))


def _nothing():
    return dsl.ContainerSpec(image="image:1")
