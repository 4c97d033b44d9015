import json
import logging
from pathlib import Path

import pytest
import tensorflow as tf

from components.trainer import local_cluster
from components.trainer.cluster_task import ClusterTask
from components.trainer.local_cluster import LocalCluster, train_in_cluster
from components.trainer.task_failure import TaskFailedError
from estimator_core.experimental import LocalClusterError

MODULE_FILE = str(Path(__file__).with_name("estimator_module.py"))
TASK = ClusterTask("{}", {}, {}, "model")


@pytest.mark.parametrize("numbers", [{"workers": 0}, {"workers": -1}, {"workers": 1, "ps": 0}])
def test_too_few_tasks_are_refused(numbers):
    with pytest.raises(ValueError, match=r"at least one of .*Received: (workers=[-0]|ps=0)"):
        LocalCluster(**numbers)


def test_it_travels_as_text():
    cluster = LocalCluster(workers=3, ps=2, evaluator=True)
    assert LocalCluster.from_json(cluster.to_json()) == cluster
    assert LocalCluster.from_json(None) is None


def test_the_chief_trains_beside_the_workers(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    launched = {}
    launch = lambda fn, **sizes: launched.update(sizes, fn=fn)  # noqa: E731
    monkeypatch.setattr(local_cluster, "launch_local_cluster", launch)
    train_in_cluster(LocalCluster(workers=2, ps=3, evaluator=True), TASK, "/no/logs")
    assert launched.pop("grace_secs") == 30
    assert launched == {"fn": TASK, "num_workers": 3, "num_ps": 3, "evaluator": True, "log_dir": "/no/logs"}
    assert "The log of each task is in /no/logs" in caplog.text


def test_the_error_of_the_users_code_is_the_error_and_a_process_that_died_is_named(monkeypatch, caplog):
    cause = TaskFailedError.from_error(ArithmeticError("too large"))

    def launch(fn, **sizes):
        raise LocalClusterError("worker 1", "Signal 9 (SIGKILL).") from cause

    monkeypatch.setattr(local_cluster, "launch_local_cluster", launch)
    with pytest.raises(ArithmeticError, match="too large") as error:
        train_in_cluster(LocalCluster(workers=2), TASK, None)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    assert "worker 1 failed. Its traceback:\n\nArithmeticError: too large" in caplog.text
    cause = None
    with pytest.raises(LocalClusterError, match=r"worker 1 failed\. Signal 9"):
        train_in_cluster(LocalCluster(workers=2), TASK, None)


@pytest.mark.parametrize(
    "tf_config",
    [
        {"task": {"type": "evaluator", "index": 0}},
        {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}},
    ],
)
def test_a_task_of_a_cluster_starts_none_of_its_own(monkeypatch, tf_config):
    monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))
    with pytest.raises(ValueError, match="TF_CONFIG makes this process a task of another"):
        train_in_cluster(LocalCluster(workers=1), TASK, None)


@pytest.mark.slow
def test_processes_train_evaluate_and_export(train):
    cluster = LocalCluster(workers=1, ps=1, evaluator=True)
    properties = {"module_file": MODULE_FILE, "trainer_fn": "trainer_fn"}
    model, model_run = train({**properties, "cluster": cluster.to_json()})
    weight = tf.train.load_variable(str(model_run / "Format-Serving"), "weight")
    assert weight.item() == pytest.approx(3.0, abs=0.1)
    assert (model / "Format-Serving" / "saved_model.pb").exists()
    assert (model / "Format-TFMA" / "saved_model.pb").exists()
    tasks = {path.stem: path.read_text() for path in (model_run / "logs").iterdir()}
    assert sorted(tasks) == ["chief-0", "evaluator-0", "ps-0", "worker-0"]
    # The evaluator has exported, and no other task.
    saved = [task for task, log in tasks.items() if "Saving dict for global step" in log]
    assert saved == ["evaluator-0"]
    (export,) = (model_run / "Format-Serving" / "export" / "serving").iterdir()
    assert export.name in tasks["evaluator-0"]
