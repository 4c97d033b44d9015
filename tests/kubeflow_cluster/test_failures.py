"""A run that is retried, terminated, or loses a pod."""

import pathlib
import time

import pytest

from tests.kubeflow_cluster.kubeflow import until

MODULE = pathlib.Path(__file__).parents[1] / "kubernetes" / "cluster_module.py"
BEFORE_TRAINER = {*("CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform")}
RUNNING_SECS = 20  # of training before something happens to it


@pytest.fixture(scope="module")
def switched(configuration, volume):
    """A configuration whose module has switches: files next to it that make it slow, or let it fail."""
    volume.write("cluster_module.py", MODULE.read_text())
    return configuration("switched", f'file = "{volume.inside("cluster_module.py")}"')


@pytest.fixture
def switch(volume):
    """Sets a switch, until the test ends or unsets it."""
    on = []

    def set_switch(name):
        volume.write(name, "")
        on.append(name)

    def unset(name):
        volume.remove(name)
        on.remove(name)

    set_switch.unset = unset
    yield set_switch
    for name in list(on):
        unset(name)


@pytest.fixture
def training(kubeflow, cluster, switched, switch):
    """A run whose Trainer is at work and slow: its id, and the Trainer's pod.

    Another number of steps trains anew; what comes before may come from the cache.
    """
    switch("slow")

    def training(steps):
        code, made = kubeflow.command("submit", "--config", switched, "--param", f"train_steps={steps}")
        assert code == 0
        run = made["run_id"]

        def running_trainer():
            pods = dict(cluster.steps(run))
            trainer = pods.get("Trainer")
            return trainer if trainer and trainer.status.phase == "Running" else None

        pod = until(running_trainer, 1800)
        time.sleep(RUNNING_SECS)
        return run, pod

    return training


def test_a_retry_fails_again_and_another_succeeds(kubeflow, cluster, switched, switch, volume):
    """One that fails again, then one that succeeds: of the same run."""
    switch("fail")
    code, made = kubeflow.command("submit", "--config", switched, "--wait")
    assert (code, made["status"]) == (1, "FAILED")
    run = made["run_id"]
    reason = volume.records("switched")[run]["reason"]
    assert "the 13th taxi has no driver" in reason

    kubeflow.retry(run)
    assert kubeflow.wait(run) == "FAILED"
    record = volume.records("switched")[run]
    assert (record["status"], record["reason"]) == ("failed", reason)

    switch.unset("fail")
    kubeflow.retry(run)
    assert kubeflow.wait(run) == "SUCCEEDED"
    record = volume.records("switched")[run]
    assert (record["status"], record["reason"]) == ("pushed", None)
    # What had succeeded did not run again.
    names = [step for step, _ in cluster.steps(run)]
    assert {names.count(step) for step in BEFORE_TRAINER} == {1}


def test_a_terminated_run_is_interrupted(kubeflow, training, volume):
    run, _ = training(300)
    kubeflow.terminate(run)
    # docs/kubeflow.md: Kubeflow calls it failed.
    assert kubeflow.wait(run) in ("FAILED", "CANCELED")
    record = volume.records("switched")[run]
    assert record["status"] == "interrupted"
    assert record["version"] is None


def test_a_step_whose_pod_is_lost_is_started_again(kubeflow, cluster, training, switch, volume):
    run, pod = training(400)
    switch.unset("slow")
    cluster.delete_pod(pod)
    assert kubeflow.wait(run) == "SUCCEEDED"
    assert volume.records("switched")[run]["status"] == "pushed"
    others = {pod_of_step.metadata.name for step, pod_of_step in cluster.steps(run) if step == "Trainer"}
    assert others - {pod.metadata.name}
