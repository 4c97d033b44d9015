"""A boosting process that is killed at any moment is continued to the forest of an unbroken one."""

import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.integration import killed_trees_program

PROGRAM = pathlib.Path(__file__).with_name("killed_trees_program.py")
ALL_STEPS = 40 * 4 * 2


def _train_and_kill(model_dir, at_step):
    """Kills a process once it has made a step; returns its first step and its last."""
    model_dir.mkdir(exist_ok=True)
    command = [sys.executable, str(PROGRAM), str(model_dir)]
    with (
        open(model_dir / "log", "a") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            made = [int(process.stdout.readline() or "0")]
            while 0 < made[-1] < at_step:
                made.append(int(process.stdout.readline() or "0"))
        finally:
            process.kill()
        rest = process.stdout.read().split("\n")[:-1]  # the last line may be half
    assert made[-1], (model_dir / "log").read_text()[-3000:]
    return made[0], [*made, *map(int, rest)][-1]


@pytest.mark.more
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_killed_boosting_ends_with_the_same_forest(tmp_path, kills):
    seed = random.randrange(10**6)
    print(f"seed={seed}")  # repeats the steps of a failure, though not the machine's load
    rng = random.Random(seed)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    saved = 0
    for at_step in sorted(rng.sample(range(15, ALL_STEPS - 60), kills)):
        first, last = _train_and_kill(killed, max(at_step, saved + 1))
        assert first == saved + 1
        saved = int(tf.train.load_variable(str(killed), "global_step"))
        assert last - 10 <= saved <= last + 1  # no more is lost than the steps since the checkpoint
    assert 0 < saved < ALL_STEPS
    killed_trees_program.main(str(killed))
    killed_trees_program.main(str(whole))
    names = [name for name, _ in tf.train.list_variables(str(whole))]
    assert "boosted_trees/threshold" in names
    for name in names:
        found = tf.train.load_variable(str(killed), name)
        np.testing.assert_array_equal(found, tf.train.load_variable(str(whole), name), err_msg=name)
    assert tf.train.load_variable(str(killed), "global_step") == ALL_STEPS
