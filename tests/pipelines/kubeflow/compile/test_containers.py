import yaml
from kfp import compiler

from pipelines.kubeflow.compile.containers import output_names, plan_step
from pipelines.kubeflow.compile.parameters import RuntimeParameter


def test_plan_gives_each_step_its_key(tmp_path):
    parameters = [RuntimeParameter("trainer.train_steps", 5)]
    components = ["Write", "Train_steps", "1st"]
    step, file = plan_step("{}", components, parameters, "image:1", "/mnt/root"), tmp_path / "plan.yaml"
    compiler.Compiler().compile(step, str(file))
    (executor,) = yaml.safe_load(file.read_text())["deploymentSpec"]["executors"].values()
    assert executor["container"]["args"] == [
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
