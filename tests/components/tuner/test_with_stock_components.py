"""Our Tuner with TFX's Trainer, and TFX's Tuner with ours, in a pipeline of TFX's own runner."""

import json

import pytest
from tfx.components.trainer.component import Trainer as StockTrainer
from tfx.components.tuner.component import Tuner as StockTuner
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner

import components as tfx
from components.tuner.search_space import Choice, Range, SearchSpace

MODULE = "tests.components.tuner.stock_module"
SPACE = SearchSpace((Range("learning_rate", 1e-3, 1e-1, log=True, default=0.01), Choice("units", (8, 16), 8)))


def make_pipeline(root, data):
    examples = tfx.CsvExampleGen(input_base=str(data))
    common = {
        "examples": examples.outputs["examples"],
        "train_args": tfx.TrainArgs(num_steps=1),
        "eval_args": tfx.EvalArgs(num_steps=1),
    }
    settings = tfx.TunerSettings(SPACE, trials=6, metric="loss")
    tuner = tfx.Tuner(settings=settings, run_fn=f"{MODULE}.run_fn", **common)
    stock_tuner = StockTuner(tuner_fn=f"{MODULE}.tuner_fn", **common).with_id("StockTuner")
    stock_trainer = StockTrainer(
        run_fn=f"{MODULE}.stock_run_fn", hyperparameters=tuner.outputs["best_hyperparameters"], **common
    ).with_id("StockTrainer")
    trainer = tfx.Trainer(
        run_fn=f"{MODULE}.run_fn", hyperparameters=stock_tuner.outputs["best_hyperparameters"], **common
    )
    return tfx.Pipeline(
        "mixed",
        str(root),
        components=[examples, tuner, stock_tuner, stock_trainer, trainer],
        metadata_connection_config=metadata.sqlite_metadata_connection_config(str(root / "metadata.db")),
        beam_pipeline_args=["--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"],
    )


@pytest.mark.slow  # a whole pipeline
def test_our_tuner_and_trainer_mix_with_those_of_tfx(tmp_path):
    root, data = tmp_path / "root", tmp_path / "data"
    data.mkdir()
    (data / "rows.csv").write_text("x,y\n" + "".join(f"{n},{2 * n}\n" for n in range(60)))
    LocalDagRunner().run(make_pipeline(root, data))
    for tuner, trainer in (("Tuner", "StockTrainer"), ("StockTuner", "Trainer")):
        (best,) = (root / tuner / "best_hyperparameters").glob("*/best_hyperparameters.txt")
        (results,) = (root / tuner / "tuner_results").glob("*/tuner_results.json")
        (used,) = (root / trainer / "model").glob("*/Format-Serving/assets.extra/values.json")
        values = json.loads(best.read_text())["values"]
        assert json.loads(used.read_text()) == values
        rows = json.loads(results.read_text())
        assert min(rows, key=lambda row: row["score"]) == rows[0]
        assert {name: rows[0][name] for name in values} == values
        assert rows[0]["score"] == pytest.approx(abs(values["learning_rate"] - 0.05))
