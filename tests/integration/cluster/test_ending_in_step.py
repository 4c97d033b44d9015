"""Tasks that train in step end together: with an input, with SIGTERM, or when one of them is gone."""

import contextlib
import functools
import time

import pytest
import tensorflow as tf

from estimator_core.experimental.local_cluster import LocalClusterError, launch_local_cluster, local_cluster
from estimator_core.training.termination import SIGTERM_EXIT_CODE
from tests.integration.cluster import programs_in_step as programs
from tests.integration.cluster.programs import steps_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@contextlib.contextmanager
def training_for_long(root):
    """Gives the tasks, a chief and two workers, once all of them have made ten steps."""
    job = functools.partial(programs.train_for_long, str(root))
    with local_cluster(job, 2, 0, False, log_dir=root / "logs", grace_secs=5) as tasks:
        for task in tasks:
            task.start()
        wait_until(lambda: all(steps_of(root, task) >= 10 for task in tasks), 300)
        yield tasks


def log_of(root, name):
    return (root / "logs" / f"{name}.log").read_text()


def checkpoint_of(root):
    return int(tf.train.latest_checkpoint(str(root / "model")).rpartition("-")[2])


def test_training_ends_with_the_first_input_that_ends(tmp_path):
    job = functools.partial(programs.train_unequal_inputs, str(tmp_path))
    result = launch_local_cluster(job, 3, chief=False, log_dir=tmp_path / "logs")
    assert result.chief == 2
    for task in range(3):
        assert "Training ends in all tasks: the input of worker 1 at" in log_of(tmp_path, f"worker-{task}")


def test_early_stopping_ends_all_after_the_same_step(tmp_path):
    job = functools.partial(programs.stop_early, str(tmp_path))
    result = launch_local_cluster(job, 2, log_dir=tmp_path / "logs")
    assert result.chief == 2
    steps = [int((tmp_path / f"steps.{task}").read_text()) for task in ("chief 0", "worker 0")]
    assert steps == [checkpoint_of(tmp_path)] * 2
    assert 4 <= steps[0] < 50


def test_a_nan_loss_of_one_ends_all_at_its_step_and_is_not_saved(tmp_path):
    job = functools.partial(programs.train_until_nan, str(tmp_path))
    launch_local_cluster(job, 2, chief=False, log_dir=tmp_path / "logs")
    steps = [(tmp_path / f"nan.worker {task}").read_text() for task in range(2)]
    assert steps == ["4", "4"]
    assert checkpoint_of(tmp_path) == 0  # one is due at step 4


@pytest.mark.parametrize("lost", [0, 1], ids=["the chief", "a worker"])
def test_the_others_name_the_task_that_was_killed(tmp_path, lost):
    with training_for_long(tmp_path) as tasks:
        killed = tasks.pop(lost)
        killed.kill()
        start = time.monotonic()
        for task in tasks:
            assert task.join(90) == 1
        assert time.monotonic() - start < 60
        for task in tasks:
            failure = task.receive()
            assert "TaskLostError" in failure.message
            assert f"{killed.name} at 127.0.0.1:" in failure.message


@pytest.mark.parametrize("told", [0, 1], ids=["the chief", "a worker"])
def test_sigterm_to_one_task_ends_all_after_the_same_step(tmp_path, told):
    with training_for_long(tmp_path) as tasks:
        tasks[told].terminate()
        for index, task in enumerate(tasks):
            assert task.join(90) == (SIGTERM_EXIT_CODE if index == told else 0)
        steps = {steps_of(tmp_path, task) for task in tasks}
        assert steps == {checkpoint_of(tmp_path)}
        others = [task for task in tasks if task is not tasks[told]]
        for task in others:
            why = f"Training ends in all tasks: {tasks[told].name} at"
            assert why in log_of(tmp_path, f"{task.kind}-{task.index}")


def test_models_that_differ_are_refused(tmp_path):
    job = functools.partial(programs.train_different_models, str(tmp_path))
    with pytest.raises(LocalClusterError, match=r"model of these tasks differs .*worker 1 at") as error:
        launch_local_cluster(job, 2, chief=False, log_dir=tmp_path / "logs")
    assert isinstance(error.value.__cause__, ValueError)


def test_a_task_may_end_its_process_before_the_others(tmp_path):
    job = functools.partial(programs.stay_after_training, str(tmp_path))
    with local_cluster(job, 2, 0, False, chief=False, log_dir=tmp_path / "logs", grace_secs=5) as tasks:
        for task in tasks:
            task.start()
        assert tasks[0].join(300) == 0
        (tmp_path / "worker 0 has returned").touch()
        assert tasks[1].join(60) == 0
        assert tasks[1].receive() is None
        assert tasks[1].result == "worker 1"
