from pathlib import Path
from typing import Any

import pytest
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import EvalArgs, LocalCluster, TrainArgs, Trainer

EXAMPLES = Channel(type=standard_artifacts.Examples)
SCHEMA = Channel(type=standard_artifacts.Schema)


def test_it_has_stock_outputs_and_passes_its_settings_on() -> None:
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


def test_changed_code_is_a_changed_execution(tmp_path: Path) -> None:
    module = tmp_path / "taxi.py"
    properties = []
    for text in ("A = 1", "A = 2", "A = 2"):
        module.write_text(text)
        trainer = Trainer(examples=EXAMPLES, module_file=str(module))
        properties.append(trainer.exec_properties["user_code"])
    assert properties[0] != properties[1] == properties[2]


def test_another_cluster_is_another_execution() -> None:
    def properties(cluster: LocalCluster | None) -> dict[str, Any]:
        trainer = Trainer(examples=EXAMPLES, schema=SCHEMA, trainer_fn="a.b", cluster=cluster)
        return dict(trainer.exec_properties)

    clusters = [
        LocalCluster(workers=1),
        LocalCluster(workers=2),
        LocalCluster(workers=1, ps=2),
        LocalCluster(workers=1, evaluator=True),
    ]
    found = [properties(cluster)["cluster"] for cluster in clusters]
    assert len({*found}) == len(clusters)
    assert properties(None).get("cluster") is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "needs a trainer_fn, a run_fn or a module_file"),
        ({"trainer_fn": "a.b", "run_fn": "a.c"}, ValueError, "one of trainer_fn and run_fn"),
        ({"trainer_fn": "a.b"}, ValueError, "pass schema="),
        ({"run_fn": "a.b", "custom_config": [1]}, TypeError, r"Received: \[1\]"),
        (
            {"run_fn": "a.b", "cluster": LocalCluster(workers=2)},
            ValueError,
            r"needs a trainer_fn\..*run_fn='a\.b', cluster=LocalCluster\(workers=2",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Trainer(examples=EXAMPLES, **arguments)
