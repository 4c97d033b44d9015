"""Runs of the demo's pipeline, in this process and on Flink, and their records."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_data_validation as tfdv
from tensorflow.core.protobuf import saved_model_pb2

from pipelines.steps.step_folders import StepFolders

PROJECT = Path(__file__).parents[2]
TAXI = PROJECT / "pipelines" / "examples" / "taxi"
JOB_SERVER = PROJECT / ".flink" / "job-server.jar"
SECS = 1200


class Project:
    """A folder with the data, the module and the configuration of the demo."""

    def __init__(self, folder):
        self.folder = folder
        text = (TAXI / "taxi.toml").read_text()
        text = re.sub(r"^path = .*taxi_module.*$", 'file = "taxi_module.py"', text, flags=re.M)
        text = re.sub(r"^train_steps = .*$", "train_steps = 100", text, flags=re.M)
        (folder / "taxi.toml").write_text(text)
        self.module = folder / "taxi_module.py"
        shutil.copy(TAXI / "taxi_module.py", self.module)

    def start(self, root, *arguments):
        """Starts `python -m pipelines run`."""
        return start(self.folder, root, "--config", self.folder / "taxi.toml", *arguments)

    def run(self, root, *arguments):
        """Runs it to its end and returns its last line, with `components`: the outcome of each."""
        return finished(self.start(root, *arguments), root)


def start(folder, root, *arguments):
    """Starts `python -m pipelines run` in a folder."""
    command = [sys.executable, "-m", "pipelines", "run", "--root", root, *arguments]
    return subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def guide_arguments(cluster):
    """Returns the arguments of the guide's command for Flink, for a cluster, without config and root."""
    guide = (PROJECT / "docs" / "beam-engines.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ *estimator-pipelines run (.*beam.flink.*)$", guide, re.MULTILINE)
    line = line.replace("--config taxi.toml --root pipeline_root", "")
    line = line.replace("localhost:8081", cluster.master).replace(".flink/", f"{PROJECT}/.flink/")
    return shlex.split(line)


def finished(process, root, code=0):
    """Waits for a run and returns its last line, with `components`: the outcome of each."""
    try:
        stdout, stderr = process.communicate(timeout=SECS)
    finally:
        process.kill()
    assert process.returncode == code, stderr[-6000:]
    line = json.loads(stdout.splitlines()[-1])
    return {**line, "components": components(root, line["run_id"])}


def components(root, run_id):
    """Returns the outcomes of a run's components so far, by name."""
    return {component["name"]: component["status"] for component in record(root, run_id)["components"]}


def record(root, run_id):
    return json.loads((Path(root) / "runs" / f"{run_id}.json").read_text())


def on_flink(cluster, **settings):
    """Returns the arguments of a run on a cluster."""
    section = {
        "runner": "flink",
        "flink.master": cluster.master,
        "flink.job_server": JOB_SERVER,
        "flink.parallelism": 2,
        **settings,
    }
    options = (("--set", f"beam.{key}={value}") for key, value in section.items())
    return ["--runner", "beam", *(text for pair in options for text in pair)]


def newest(root, component, output):
    """Returns the folder of a component's newest output."""
    *_, step = StepFolders(Path(root) / "artifacts").all_finished(component)
    return step.folder / output


def files(root, component, output):
    """Returns the bytes of all files of examples that a component has written, by split and name."""
    folder = newest(root, component, output)
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in folder.glob("Split-*/*")}


def statistics(root, split):
    """Returns the statistics of a split: each number and text by where it stands."""
    folder = newest(root, "StatisticsGen", "statistics") / f"Split-{split}"
    (file,) = folder.glob("*.pb")
    (dataset,) = tfdv.load_stats_binary(str(file)).datasets
    values = {"num_examples": dataset.num_examples}
    for feature in dataset.features:
        name = feature.name or ".".join(feature.path.step)
        values.update(_leaves(feature, name))
    return values


def _leaves(message, where):
    for field, value in message.ListFields():
        path = f"{where}.{field.name}"
        values = [value] if hasattr(value, "ListFields") or np.isscalar(value) else list(value)
        for number, item in enumerate(values):
            if hasattr(item, "ListFields"):
                yield from _leaves(item, f"{path}[{number}]")
            else:
                yield f"{path}[{number}]", item


def constants(root):
    """Returns the floating-point constants of the Transform graph, by name."""
    graph = newest(root, "Transform", "transform_graph")
    model = saved_model_pb2.SavedModel.FromString((graph / "transform_fn" / "saved_model.pb").read_bytes())
    values = {}
    for node in (node for part in model.meta_graphs for node in part.graph_def.node):
        if node.op == "Const":
            value = tf.make_ndarray(node.attr["value"].tensor)
            if value.dtype.kind == "f":
                values[node.name] = value
    return values


def assets(root):
    """Returns the vocabularies of the Transform graph, by name."""
    folder = newest(root, "Transform", "transform_graph") / "transform_fn" / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir()}
