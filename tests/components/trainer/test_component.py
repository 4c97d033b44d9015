from pathlib import Path

import pytest
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import CsvExampleGen, EvalArgs, LocalCluster, Pipeline, TrainArgs, Trainer
from components.trainer.executor import Executor, GenericExecutor

EXAMPLES = Channel(type=standard_artifacts.Examples)
SCHEMA = Channel(type=standard_artifacts.Schema)
GRAPH = Channel(type=standard_artifacts.TransformGraph)


def test_it_has_stock_outputs_and_passes_its_settings_on():
    trainer = Trainer(
        examples=EXAMPLES,
        schema=SCHEMA,
        trainer_fn="my_project.taxi.trainer_fn",
        train_args=TrainArgs(num_steps=5),
        eval_args=EvalArgs(num_steps=2),
        custom_config={"layers": [8]},
    )
    assert trainer.outputs["model"].type is standard_artifacts.Model
    assert trainer.outputs["model_run"].type is standard_artifacts.ModelRun
    assert trainer.exec_properties["trainer_fn"] == "my_project.taxi.trainer_fn"
    assert trainer.exec_properties["custom_config"] == '{"layers": [8]}'
    assert '"num_steps": 5' in trainer.exec_properties["train_args"]


def test_changed_code_is_a_changed_execution(tmp_path):
    module = tmp_path / "taxi.py"
    properties = []
    for text in ("A = 1", "A = 2", "A = 2"):
        module.write_text(text)
        trainer = Trainer(examples=EXAMPLES, module_file=str(module))
        properties.append(trainer.exec_properties["user_code"])
    assert properties[0] != properties[1] == properties[2]


def test_another_cluster_is_another_execution():
    def properties(cluster):
        trainer = Trainer(examples=EXAMPLES, schema=SCHEMA, trainer_fn="a.b", cluster=cluster)
        return dict(trainer.exec_properties)

    settings = ({"workers": 1}, {"workers": 2}, {"workers": 1, "ps": 2}, {"workers": 1, "evaluator": True})
    found = [properties(LocalCluster(**setting))["cluster"] for setting in settings]
    assert len({*found}) == len(settings)
    assert properties(None).get("cluster") is None


TWO = LocalCluster(workers=2)
CLOUD_MODULE = {"__module__": "tfx.extensions.google_cloud_ai_platform.trainer.executor"}
CLOUD = ExecutorClassSpec(type("GenericExecutor", (GenericExecutor,), CLOUD_MODULE))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "needs a trainer_fn, a run_fn or a module_file"),
        ({"trainer_fn": "a.b", "run_fn": "a.c"}, ValueError, "one of trainer_fn and run_fn"),
        ({"trainer_fn": "a.b"}, ValueError, "pass schema="),
        ({"run_fn": "a.b", "custom_config": [1]}, TypeError, r"Received: \[1\]"),
        (
            {"run_fn": "a.b", "cluster": TWO},
            ValueError,
            r"needs a trainer_fn\..*run_fn='a\.b', cluster=.*workers=2",
        ),
        (
            {"run_fn": "a.b", "custom_executor_spec": CLOUD},
            ValueError,
            "Use Trainer without custom_executor_spec",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Trainer(examples=EXAMPLES, **arguments)


def test_the_arguments_of_older_definitions_are_understood():
    statistics = Channel(type=standard_artifacts.ExampleStatistics)
    trainer = Trainer(
        module_file="taxi.py",
        transformed_examples=EXAMPLES,
        transform_graph=GRAPH,
        statistics=statistics,
        custom_executor_spec=ExecutorClassSpec(Executor),
    )
    assert trainer.inputs["examples"] is EXAMPLES
    assert trainer.inputs["statistics"] is statistics
    assert trainer.executor_spec.executor_class is Executor
    assert Trainer(trainer_fn="a.b", examples=EXAMPLES, transform_graph=GRAPH).inputs


def test_values_of_the_run_are_passed_on():
    module, config = RuntimeParameter("module", str), RuntimeParameter("config", str)
    trainer = Trainer(examples=EXAMPLES, module_file=module, custom_config=config)
    assert trainer.exec_properties["module_file"] is module
    assert trainer.exec_properties["custom_config"] is config
    assert not trainer.exec_properties.get("user_code")
    for name in ("trainer_fn", "run_fn"):
        function = RuntimeParameter("function", str)
        trainer = Trainer(examples=EXAMPLES, schema=SCHEMA, **{name: function})
        assert trainer.exec_properties[name] is function


def test_a_module_file_that_does_not_exist_is_reported_before_the_first_component_runs(tmp_path):
    file = RuntimeParameter("module", str, default="absent.py")
    for module_file in ("gs://bucket/taxi.py", file):
        Trainer(examples=EXAMPLES, module_file=module_file)._resolve_pip_dependencies("root")
    trainer = Trainer(examples=EXAMPLES, module_file="absent.py")
    with pytest.raises(FileNotFoundError, match=r"Trainer: module_file .*'absent.py' \(.*/absent.py\)"):
        trainer._resolve_pip_dependencies(str(tmp_path))  # as LocalDagRunner calls it


def test_only_a_pipeline_for_kubeflow_has_the_module_file_in_a_wheel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("taxi.py").write_text("def run_fn(args): pass\n")
    examples = CsvExampleGen(input_base="data")
    trainer = Trainer(examples=examples.outputs["examples"], module_file="taxi.py")
    here = Trainer(examples=examples.outputs["examples"], module_file="taxi.py")
    here._resolve_pip_dependencies(str(tmp_path / "root"))  # as LocalDagRunner calls it
    assert here.exec_properties["module_file"] == "taxi.py"
    pipeline = Pipeline("p", str(tmp_path / "root"), components=[examples, trainer])
    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig()
    kubeflow_v2_dag_runner.KubeflowV2DagRunner(config).run(pipeline, write_out=False)
    wheels = tmp_path / "root" / "_wheels"
    assert trainer.exec_properties["module_path"] == f"taxi@{next(wheels.iterdir())}"
    assert trainer.exec_properties["module_file"] is None
