"""The commands that TFX's KubeflowV2DagRunner compiles for CsvExampleGen and Trainer, run as written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # four processes that import TensorFlow and TFX

DEFINITION = """
import components; components.install()
import sys
from tfx import v1 as tfx

root = sys.argv[1]
gen = tfx.components.CsvExampleGen(input_base=f"{root}/data")
trainer = tfx.components.Trainer(
    module_file="labels.py", run_fn="run_fn", examples=gen.outputs["examples"],
    train_args=tfx.proto.TrainArgs(num_steps=30), eval_args=tfx.proto.EvalArgs(num_steps=2),
    custom_config={"unit": "km"})
config = tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(default_image="image:1")
runner = tfx.orchestration.experimental.KubeflowV2DagRunner(config=config, output_filename="compiled.json")
runner.run(tfx.dsl.Pipeline(pipeline_name="p", pipeline_root=f"{root}/root", components=[gen, trainer]))
"""
MODULE = """
import tensorflow as tf

def run_fn(fn_args):
    dataset = tf.data.TFRecordDataset(tf.io.gfile.glob(fn_args.train_files), "GZIP")
    examples = [tf.train.Example.FromString(record.numpy()) for record in dataset]
    module = tf.Module()
    module.total = tf.Variable(sum(e.features.feature["distance"].int64_list.value[0] for e in examples))
    unit = fn_args.custom_config["unit"]
    module.unit = tf.Variable(f"{unit} {fn_args.train_steps} {tf.estimator.__name__}")
    tf.saved_model.save(module, fn_args.serving_model_dir)
"""


def run_task(spec: dict, name: str, artifacts: dict, folder: Path) -> dict:
    """Runs a task's driver, if it has one, and its container, as Vertex would; returns its outputs."""
    task = spec["root"]["dag"]["tasks"][name]
    component = spec["components"][task["componentRef"]["name"]]
    container = spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
    outputs = {
        key: {
            "name": f"projects/1/{name}/{key}",
            "uri": str(folder / name / key),
            "type": value["artifactType"],
        }
        for key, value in component["outputDefinitions"]["artifacts"].items()
    }
    invocation = {
        "inputs": {
            "parameters": {
                key: value["runtimeValue"]["constantValue"]
                for key, value in task["inputs"].get("parameters", {}).items()
            },
            "artifacts": {key: {"artifacts": [value]} for key, value in artifacts.items()},
        },
        "outputs": {
            "artifacts": {key: {"artifacts": [value]} for key, value in outputs.items()},
            "outputFile": str(folder / name / "result.json"),
        },
    }
    for output in outputs.values():
        Path(output["uri"]).mkdir(parents=True)

    def execute(step: dict) -> dict:
        arguments = [json.dumps(invocation) if a == "{{$}}" else a for a in step["args"]]
        # `python` is that of this environment, as in an image.
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            [*step["command"], *arguments],
            cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(Path(invocation["outputs"]["outputFile"]).read_text())

    if driver := container.get("lifecycle", {}).get("preCacheCheck"):
        driven = execute(driver)
        for key, value in driven["parameterValues"].items():
            kind = "stringValue" if isinstance(value, str) else "intValue"
            invocation["inputs"]["parameters"][key] = {kind: value}
        for key, value in driven["artifacts"].items():
            outputs[key]["metadata"] = value["artifacts"][0]["metadata"]
    results = execute(container)["artifacts"]
    return {
        key: {**outputs[key], **value["artifacts"][0], "type": outputs[key]["type"]}
        for key, value in results.items()
    }


def test_they_run_in_another_folder_than_the_one_that_compiled_them(tmp_path: Path) -> None:
    compiling, running = tmp_path / "compiling", tmp_path / "running"
    for folder in (tmp_path / "data", compiling, running):
        folder.mkdir()
    (tmp_path / "data" / "trips.csv").write_text("distance\n" + "".join(f"{i}\n" for i in range(60)))
    (compiling / "definition.py").write_text(DEFINITION)
    (compiling / "labels.py").write_text(MODULE)
    command = [sys.executable, "definition.py", str(tmp_path)]
    subprocess.run(command, cwd=compiling, check=True, capture_output=True)
    spec = json.loads((compiling / "compiled.json").read_text())["pipelineSpec"]
    for file in compiling.iterdir():  # the container has no file of this folder
        file.unlink()
    examples = run_task(spec, "CsvExampleGen", {}, running)["examples"]
    assert examples["metadata"]["input_fingerprint"].startswith("split:single_split,num_files:1,")
    model = run_task(spec, "Trainer", {"examples": examples}, running)["model"]

    import tensorflow as tf

    values = {"train": 0, "eval": 0}
    for split in values:
        (file,) = Path(examples["uri"], f"Split-{split}").iterdir()
        for record in tf.data.TFRecordDataset(str(file), "GZIP"):
            feature = tf.train.Example.FromString(record.numpy()).features.feature["distance"]
            values[split] += feature.int64_list.value[0]
    assert values["train"] + values["eval"] == 59 * 60 / 2
    trained = tf.saved_model.load(f"{model['uri']}/Format-Serving")
    assert int(trained.total) == values["train"]
    assert trained.unit.numpy() == b"km 30 estimator_core"
