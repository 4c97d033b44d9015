"""Evaluating beside a training that deletes its old checkpoints."""

import os

import pytest

import estimator_core as est
from estimator_core.checkpoints.latest import with_newest
from estimator_core.training.evaluator import Evaluator


class Folder:
    """Checkpoints that a training writes and deletes."""

    def __init__(self, folder, *steps):
        self._folder, self.steps, self.waits = folder, (), []
        self.replace(*steps)

    def newest(self):
        return str(self._folder / f"model.ckpt-{self.steps[-1]}") if self.steps else None

    def replace(self, *steps):
        for step in self.steps:
            os.remove(self._folder / f"model.ckpt-{step}.index")
        for step in steps:
            (self._folder / f"model.ckpt-{step}.index").touch()
        self.steps = steps

    def sleep(self, secs):
        self.waits.append(secs)


def test_a_checkpoint_that_is_deleted_is_passed_over_for_the_next_one(tmp_path):
    folder, reads = Folder(tmp_path, 1, 2), []

    def read(path):
        reads.append(os.path.basename(path))
        if len(reads) < 3:
            folder.replace(*(step + 2 for step in folder.steps))
            raise ValueError("not a valid checkpoint")
        return path

    assert with_newest(folder.newest, read, folder.sleep).endswith("model.ckpt-6")
    assert reads == ["model.ckpt-2", "model.ckpt-4", "model.ckpt-6"]


def test_a_moment_without_any_checkpoint_is_waited_out(tmp_path):
    folder = Folder(tmp_path, 1)

    def sleep(secs):
        folder.waits.append(secs)
        if len(folder.waits) == 3:
            folder.replace(2)

    def read(path):
        if path.endswith("-1"):
            folder.replace()
            raise ValueError("not a valid checkpoint")
        return path

    assert with_newest(folder.newest, read, sleep).endswith("model.ckpt-2")
    assert 0 < sum(folder.waits) < 1


@pytest.mark.parametrize("left", [(), (1,)])
def test_an_error_is_raised_that_has_another_cause(tmp_path, left):
    folder = Folder(tmp_path, 1)

    def read(path):
        if not left:
            folder.replace()
        raise ValueError("of another model")

    with pytest.raises(ValueError, match="of another model"):
        with_newest(folder.newest, read, folder.sleep)
    with pytest.raises(ValueError, match="of another model"):
        with_newest(lambda: str(tmp_path / "given"), read, folder.sleep)


def test_the_evaluator_task_goes_on_with_the_next_checkpoint(beside):
    estimator, input_fn = beside
    evaluation = Evaluator(estimator, est.EvalSpec(input_fn)).evaluate_and_export(False)
    assert evaluation.checkpoint_path.endswith("-4")
    assert evaluation.metrics["global_step"] == 4
