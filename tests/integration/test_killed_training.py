"""A training process that is killed at any moment leaves a model_dir that the next one continues."""

import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

PROGRAM = pathlib.Path(__file__).with_name("killed_program.py")
STEPS_BETWEEN_KILLS = 4
LONGEST_DELAY_SECS = 2.0  # some cycles of steps, checkpoint, evaluation and export


@pytest.mark.slow  # tests/contract/test_killed_training.py has one kill
@pytest.mark.parametrize("kills", [2, 20])
def test_every_restart_continues(tmp_path, kills):
    seed = random.randrange(10**6)
    print(f"seed={seed}")  # repeats the delays of a failure, though not the machine's load
    rng = random.Random(seed)
    max_steps = 10_000
    saved = 0
    for kill in range(kills):
        first_step, last_step = _train_and_kill(
            tmp_path, max_steps, STEPS_BETWEEN_KILLS, rng.uniform(0, LONGEST_DELAY_SECS)
        )
        assert first_step == saved + 1, f"after kill {kill}"
        saved = _check_model_dir(tmp_path)
        # Checkpoints come every 2 steps: no more than the steps since the newest one are lost.
        assert last_step - 2 <= saved <= last_step + 1, f"kill {kill}"
    max_steps = saved + 7
    with _start(tmp_path, max_steps) as process:
        steps = [int(line) for line in process.stdout]
    assert process.returncode == 0
    assert steps[-1] == max_steps
    assert _check_model_dir(tmp_path) == max_steps
    best = json.loads((tmp_path / "best_eval_result.best.json").read_text())
    assert best["global_step"] == max_steps
    assert len(_exports(tmp_path)) == 2  # exports_to_keep


def _start(model_dir, max_steps):
    command = [sys.executable, str(PROGRAM), str(model_dir), str(max_steps)]
    with open(model_dir / "log", "a") as log:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)


def _train_and_kill(model_dir, max_steps, steps, delay_secs):
    """Kills a process `delay_secs` after it has made `steps` steps; returns its first and last."""
    with _start(model_dir, max_steps) as process:
        try:
            made = [int(process.stdout.readline() or "0") for _ in range(steps)]
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=delay_secs)
        finally:
            process.kill()
        rest = process.stdout.read().split("\n")[:-1]  # the last line may be half
    assert made[-1], (model_dir / "log").read_text()[-3000:]
    made += map(int, rest)
    assert made == list(range(made[0], made[0] + len(made)))
    return made[0], made[-1]


def _check_model_dir(model_dir):
    """Returns the step of the newest checkpoint, after reading every file that claims to be whole."""
    state = tf.train.get_checkpoint_state(str(model_dir))
    assert state is not None
    assert state.model_checkpoint_path == state.all_model_checkpoint_paths[-1]
    for path in state.all_model_checkpoint_paths:
        step = _counted_steps(path)
        assert tf.train.load_variable(path, "global_step") == step
        assert path.endswith(f"-{step}")
    for directory in _exports(model_dir):
        assert tf.saved_model.contains_saved_model(str(directory))
        _counted_steps(str(directory / "variables" / "variables"))
    best = model_dir / "best_eval_result.best.json"
    if best.exists():
        result = json.loads(best.read_text())
        assert result["loss"] == pytest.approx(1 / (1 + result["global_step"]))
    return step


def _counted_steps(path):
    table = tf.train.load_variable(path, "table")
    assert np.all(table == table[0, 0])
    return int(table[0, 0])


def _exports(model_dir):
    return [path for path in (model_dir / "export/best").glob("*") if path.name.isdigit()]
