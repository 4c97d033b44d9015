"""A training that is killed in the middle of a session call goes on from its newest checkpoint, exactly."""

import pathlib
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

from tests.contract import killed_training
from tests.contract.executions import values_of

_PROGRAM = pathlib.Path(killed_training.__file__)


def weights(checkpoint):
    return {name: value.tobytes() for name, value in values_of(checkpoint).items()}


def run(*words):
    return subprocess.run([sys.executable, str(_PROGRAM), *map(str, words)], capture_output=True, text=True)


@pytest.mark.more
@pytest.mark.parametrize("steps", ["auto", pytest.param(25, marks=pytest.mark.slow)])
def test_it_goes_on_exactly(tmp_path, steps):
    """Killed at step 173: the call has begun at 160 or 150, and would have gone to 200 or 175."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    first = run(killed, steps, 172)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert "one by one" not in first.stderr  # the steps were made by a loop in the graph
    assert tf.train.latest_checkpoint(str(killed)) == str(killed / "model.ckpt-160")
    second = run(killed, steps)
    assert second.returncode == 0, second.stderr

    # The same, ended at step 160 and gone on with, one step in a session call.
    killed_training.train(whole, 1, last=160)
    assert weights(killed / "model.ckpt-160") == weights(whole / "model.ckpt-160")
    killed_training.train(whole, 1)
    for step in (240, 400):
        found = weights(killed / f"model.ckpt-{step}")
        assert found == weights(whole / f"model.ckpt-{step}")
        assert len(found) == 5  # two layers, their momenta, the global step
