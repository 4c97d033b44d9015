"""A run with a search that is killed in a trial and resumed, through the command line."""

import json
import random
import signal
from pathlib import Path

import pytest

MODULE = Path(__file__).with_name("tuned_module.py")
SPACE = (
    "tuner.space.learning_rate={low = 3e-4, high = 0.1, log = true}",
    "tuner.space.units=[4, 16]",
    "tuner.space.dropout={low = 0.0, high = 0.3}",
)


def write(file):
    """Writes a ring of ones around zeros: neither column alone tells anything."""
    draw = random.Random(1)
    lines = ["x,z,y"]
    for _ in range(900):
        x, z = draw.uniform(-1, 1), draw.uniform(-1, 1)
        lines.append(f"{x:.4f},{z:.4f},{int(x * x + z * z + draw.gauss(0, 0.1) > 0.6)}")
    file.write_text("\n".join(lines) + "\n")


def options(*settings):
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.slow
def test_a_killed_search_goes_on_and_its_values_train_the_model(warm_command, tmp_path):
    data, root, mark = tmp_path / "ring.csv", tmp_path / "root", tmp_path / "kill"
    write(data)
    mark.touch()
    settings = options(
        f"module.file={MODULE}",
        "trainer.train_steps=200",
        "tuner.trials=6",
        "tuner.folds=1",
        "tuner.metric=auc",
        *SPACE,
        f'trainer.custom_config.kill={{trial = 3, step = 120, mark = "{mark}"}}',
    )
    request = ("run", "--data", data, "--label", "y", "--root", root, *settings)
    assert warm_command(*request).returncode == -signal.SIGKILL
    assert list(root.glob("artifacts/Tuner/*/unfinished/*/trials/3/*"))

    result = warm_command("run", "--root", root, "--resume")
    assert result.returncode == 0, result.stderr[-3_000:]
    outcome = json.loads(result.stdout.splitlines()[-1])
    assert not list(root.glob("artifacts/Tuner/*/unfinished"))
    file = root / "runs" / "details" / outcome["run_id"] / "search.json"
    search = json.loads(file.read_text())
    trials = search["trials"]
    assert [one["attempts"] for one in trials] == [1, 1, 1, 2, 1, 1]
    assert [one["step"] for one in trials[3]["evaluations"]][:4] == [50, 100, 150, 200]
    best, default = trials[search["best"]], trials[search["default"]]
    assert default["values"] == {}
    assert best["value"] > default["value"] + 0.05
    report = Path(outcome["report"]).read_text()
    assert "Trials, the best first" in report

    # The model has the best units: its layer is as wide.
    import tensorflow as tf

    variables = tf.train.load_checkpoint(root / "serving" / outcome["version"] / "variables" / "variables")
    width = variables.get_tensor("dnn/hiddenlayer_0/bias").shape[0]
    assert width == best["values"]["units"]

    again = warm_command(*request, "--set", "evaluator.confidence=0.9")
    assert "= Tuner  unchanged, reused" in again.stderr
