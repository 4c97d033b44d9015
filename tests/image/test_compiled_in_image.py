"""Each step of the compiled pipeline in the image that `make test-image` has built."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

IMAGE = os.environ.get("IMAGE")
ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not IMAGE, reason="IMAGE names no image; `make test-image` builds one"),
]


def test_the_demo_compiled_and_run_step_by_step_in_the_image(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for folder in (tmp_path, tmp_path.parent):
        folder.chmod(0o755)
    root = tmp_path / "root"
    subprocess.run(
        [
            *(sys.executable, "-m", "pipelines.examples.taxi.generate"),
            *("--rows=4000", "--seed=1", "--out", str(tmp_path / "taxi.csv")),
        ],
        env=environment,
        check=True,
    )
    outcome = subprocess.run(
        [
            *(sys.executable, "-m", "pipelines", "run", "--runner", "kubeflow", "--local"),
            *("--image", IMAGE, "--root", str(root)),
            *("--config", str(ROOT / "pipelines/examples/taxi/taxi.toml")),
            *("--set", f"data.path={tmp_path / 'taxi.csv'}", "--set", "trainer.train_steps=400"),
        ],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    result = json.loads(outcome.stdout.splitlines()[-1])
    assert (outcome.returncode, result["status"]) == (0, "pushed")
    model = root / "serving" / str(result["version"]) / "saved_model.pb"
    # root runs the steps as the image's user, anyone else as itself.
    assert model.stat().st_uid == (1000 if os.getuid() == 0 else os.getuid())
