"""Tasks are killed and come back, in a cluster of a chief, a worker and a parameter server."""

import functools

import pytest
import tensorflow as tf

from estimator_core.experimental.local_cluster import LocalClusterError, launch_local_cluster, local_cluster
from estimator_core.training.termination import SIGTERM_EXIT_CODE
from tests.integration.cluster import programs
from tests.integration.cluster.programs import steps_of, wait_until

pytestmark = pytest.mark.slow


class Cluster:
    """A training that goes on until `stop`, and its tasks."""

    def __init__(self, root, tasks):
        self.root = root
        self.ps, self.chief, self.worker = tasks

    def start(self):
        for task in (self.ps, self.chief, self.worker):
            task.start()
        self.train_on()

    def train_on(self):
        """Waits until both the chief and the worker have made ten steps more."""
        for task in (self.chief, self.worker):
            before = steps_of(self.root, task)
            wait_until(lambda task=task, before=before: steps_of(self.root, task) >= before + 10)

    def checkpoint(self):
        """The global step of the newest checkpoint: 0 at first, or more if the worker was faster."""
        path = tf.train.latest_checkpoint(str(self.root / "model"))
        return int(path.rpartition("-")[2])

    def stop(self):
        (self.root / "stop").touch()
        for task in (self.chief, self.worker):
            assert task.join(60) == 0

    def log(self, task):
        return (self.root / "logs" / f"{task.kind}-{task.index}.log").read_text()


@pytest.fixture
def cluster(tmp_path, request):
    job = functools.partial(programs.train_until_told, str(tmp_path), request.param)
    with local_cluster(job, 1, 1, False, log_dir=tmp_path / "logs", grace_secs=10) as tasks:
        cluster = Cluster(tmp_path, tasks)
        cluster.start()
        yield cluster


often, never = (pytest.mark.parametrize("cluster", [steps], indirect=True) for steps in (20, 10**6))


@often
def test_a_worker_that_was_killed_rejoins(cluster):
    cluster.worker.kill()
    before = steps_of(cluster.root, cluster.chief)
    wait_until(lambda: steps_of(cluster.root, cluster.chief) >= before + 10)  # alone
    cluster.worker.start()
    cluster.train_on()
    cluster.stop()


@often
def test_a_chief_that_was_killed_goes_on_from_its_checkpoint(cluster):
    wait_until(lambda: cluster.checkpoint() >= 40)
    cluster.chief.kill()
    saved = cluster.checkpoint()
    before = steps_of(cluster.root, cluster.worker)
    wait_until(lambda: steps_of(cluster.root, cluster.worker) >= before + 10)  # alone
    assert cluster.checkpoint() == saved
    cluster.chief.start()
    cluster.train_on()
    cluster.stop()
    assert f"model.ckpt-{saved}\n" in cluster.log(cluster.chief).split("Restoring parameters")[1]
    assert cluster.checkpoint() > saved


@often
def test_a_parameter_server_that_was_killed_gets_its_variables_from_the_checkpoint(cluster):
    wait_until(lambda: cluster.checkpoint() >= 40)
    cluster.ps.kill()
    saved = cluster.checkpoint()
    cluster.ps.start()
    cluster.train_on()
    cluster.stop()
    assert f"model.ckpt-{saved}\n" in cluster.log(cluster.chief).split("Restoring parameters")[1]
    assert cluster.checkpoint() > saved


@never
def test_sigterm_to_the_chief_saves_a_checkpoint_and_exits_with_a_code_of_its_own(cluster):
    steps = steps_of(cluster.root, cluster.chief)
    assert cluster.checkpoint() < steps
    cluster.chief.terminate()
    assert cluster.chief.join(60) == SIGTERM_EXIT_CODE == 143
    assert cluster.checkpoint() >= steps


@never
def test_sigterm_to_a_worker_ends_it_alone(cluster):
    saved = cluster.checkpoint()
    cluster.worker.terminate()
    assert cluster.worker.join(60) == SIGTERM_EXIT_CODE
    before = steps_of(cluster.root, cluster.chief)
    wait_until(lambda: steps_of(cluster.root, cluster.chief) >= before + 10)
    assert cluster.checkpoint() == saved


@never
def test_sigterm_to_all_tasks_at_once_saves_a_checkpoint(cluster):
    """As a scheduler ends a job: the parameter server stays until the chief has saved."""
    steps = steps_of(cluster.root, cluster.chief)
    assert cluster.checkpoint() < steps
    for task in (cluster.ps, cluster.worker, cluster.chief):
        task.terminate()
    assert [task.join(60) for task in (cluster.chief, cluster.worker, cluster.ps)] == [143] * 3
    assert cluster.checkpoint() >= steps


def test_a_worker_with_another_model_is_refused(tmp_path):
    job = functools.partial(programs.train_another_model_in_the_worker, str(tmp_path / "model"))
    with pytest.raises(LocalClusterError, match=r"'weight': float32 \(2,\) here, float32 \(\)"):
        launch_local_cluster(job, num_workers=2, num_ps=1)
