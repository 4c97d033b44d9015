"""A pipeline with every kind of setting, read and submitted by a kfp that is newer than TFX takes."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.kubeflow.compile.pipeline_file import compile_pipeline
from tests.pipelines.kubeflow.compile.test_pipeline_file import SETTINGS
from tests.pipelines.kubeflow.kfp_server import KfpServer

PROJECT = pathlib.Path(__file__).parents[2]
PYTHON = PROJECT / ".kubeflow" / "newer-kfp" / "bin" / "python"
SCRIPT = pathlib.Path(__file__).with_name("newer_kfp.py")

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no newer kfp; `make test-kubeflow` installs it")


@pytest.fixture(scope="module")
def text():
    config = {
        "name": "taxi",
        "data": {"path": "/mnt/pipelines/taxi.csv", "label": "tips"},
        "trainer": {"learning_rate": 0.25, "train_steps": 700},
        "kubeflow": {
            "image": "registry.example.com/pipelines:1.0",
            "pipeline_root": "minio://mlpipeline/v2/artifacts",
            "root": "/mnt/pipelines/taxi",
            "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines", "sub_path": "taxi"}],
            "umask": "027",
            **SETTINGS,
        },
    }
    return compile_pipeline(PipelineConfig.model_validate(config))


@pytest.fixture
def submitted(tmp_path):
    """Submits a YAML; the exit code, the output, and the runs that the server has."""

    def submitted(text):
        file = tmp_path / "pipeline.yaml"
        file.write_text(text, encoding="utf-8")
        with contextlib.closing(KfpServer()) as server:
            done = subprocess.run(
                [PYTHON, SCRIPT, file, server.url],
                env={"HOME": str(tmp_path), "PATH": os.defpath},
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
        print(done.stdout, done.stderr)
        return done.returncode, done.stdout + done.stderr, list(server.runs.values())

    return submitted


def test_it_reads_and_submits_what_we_compile(text, submitted):
    code, output, (run,) = submitted(text)
    assert code == 0
    printed = json.loads(output.splitlines()[-1])
    assert tuple(map(int, printed["kfp"].split(".")[:2])) >= (2, 17)
    assert run["run_id"] == printed["run"]
    assert run["runtime_config"]["parameters"] == {"train_steps": 7}


@pytest.mark.parametrize("name", ["cachingOptions", "pvcMount"])
def test_a_field_that_it_does_not_know_is_an_error(text, submitted, name):
    code, output, runs = submitted(text.replace(f"{name}:", f"{name}Renamed:"))
    assert (code, runs) == (1, [])
    assert f'no field named "{name}Renamed"' in output
