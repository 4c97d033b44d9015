"""Runs the programs of docs/projects.md, changed as their diffs say."""

import os
import subprocess
import sys

import numpy as np
import pytest

from components import Trainer
from pipelines.config.load import load_config
from tests.docs.markdown import ROOT, blocks, read

TEXT = read("docs/projects.md")
SCRIPT, CONTRIB, PIPELINE, TPU_PROGRAM, PRIVATE = blocks(TEXT, "diff")
INPUT = """


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [[1.0, 0.0]]}, [[2.0]])).batch(1).repeat(50)
"""
USE = """
model.train(input_fn)
print(model.evaluate(input_fn))
"""
USE_OF_PRIVATE = f"""{INPUT}

model = tf.estimator.Estimator(my_model_fn, "model")
{USE}"""


def side(diff, removed):
    """Returns a diff's lines without those that begin with `removed`, "-" or "+"."""
    lines = [line for line in diff.splitlines() if not line.startswith(removed)]
    return "\n".join(line[1:] for line in lines) + "\n"


def run(program, folder):
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_script_of_tensorflow_1_does_not_run_as_it_was(tmp_path):
    done = run(side(SCRIPT, "+"), tmp_path)
    error = "module 'tensorflow' has no attribute 'estimator'"
    assert (done.returncode, error in done.stderr, error in TEXT) == (1, True, True)


@pytest.mark.more
@pytest.mark.parametrize(
    ("program", "step", "loss"),
    [  # It is 0 for weights 2 and 3; (w - 2)^2 + 0.01 w^2 / 2, with tf.contrib, is least at w = 2 / 1.005.
        pytest.param(side(SCRIPT, "-"), 50, 0, id="script"),
        pytest.param(side(TPU_PROGRAM, "-"), 40, 0, id="tpu_program"),
        pytest.param(side(PRIVATE, "-") + USE_OF_PRIVATE, 50, 0, id="private"),
        pytest.param(side(CONTRIB, "-") + INPUT + USE, 50, 4 * 0.005 / 1.005, id="contrib"),
    ],
)
def test_a_changed_program_trains(program, step, loss, tmp_path):
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    metrics = eval(done.stdout.splitlines()[-1], {"np": np})
    assert metrics["global_step"] == step
    assert metrics["loss"] == pytest.approx(loss, rel=1e-4, abs=1e-6)


def test_the_changed_pipeline_has_our_trainer_and_the_configuration_its_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taxi_module.py").write_text("def trainer_fn(trainer_fn_args, schema): ...\n")
    names = {name: Node() for name in ("transform", "schema_gen")}
    exec(side(PIPELINE, "-"), names)
    assert isinstance(names["trainer"], Trainer)
    (text,) = blocks(TEXT, "toml")
    file = tmp_path / "taxi.toml"
    file.write_text(text)
    assert load_config(file).module.file.endswith("taxi_module.py")


class Node:
    """A component before the Trainer, with the outputs that it takes."""

    @property
    def outputs(self):
        from tfx.types import channel_utils, standard_artifacts

        return {
            "transformed_examples": channel_utils.as_channel([standard_artifacts.Examples()]),
            "transform_graph": channel_utils.as_channel([standard_artifacts.TransformGraph()]),
            "schema": channel_utils.as_channel([standard_artifacts.Schema()]),
        }
