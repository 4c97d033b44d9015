import json
import threading
from dataclasses import asdict

import pytest

from components.trainer.cluster_task import ClusterTask
from components.trainer.task_failure import TaskFailedError
from pipelines.kubeflow import indexed_task
from pipelines.kubeflow.indexed_task import (
    CLUSTER_VARIABLE,
    DONE_FILE,
    INDEX_VARIABLE,
    pod_tf_config,
    run_task,
)
from pipelines.kubeflow.training.indexed_job import task_addresses

CLUSTER = task_addresses("t", workers=2, ps=2)
TOLD = {CLUSTER_VARIABLE: json.dumps(CLUSTER)}


@pytest.mark.parametrize(
    ("index", "kind", "number"),
    [(0, "chief", 0), (1, "worker", 0), (2, "worker", 1), (3, "ps", 0), (4, "ps", 1)],
)
def test_the_part_belongs_to_the_index(index, kind, number):
    config = json.loads(pod_tf_config({**TOLD, INDEX_VARIABLE: str(index)}))
    assert (config["cluster"], config["task"]) == (CLUSTER, {"type": kind, "index": number})
    assert f"t-{index}.t:2222" == CLUSTER[kind][number]


@pytest.mark.parametrize(
    ("environment", "error", "message"),
    [
        ({**TOLD, INDEX_VARIABLE: "5"}, ValueError, r"has 5 tasks.*JOB_COMPLETION_INDEX=5"),
        ({INDEX_VARIABLE: "0"}, LookupError, CLUSTER_VARIABLE),
        (TOLD, LookupError, INDEX_VARIABLE),
    ],
    ids=["an index that the cluster does not have", "no cluster", "no index"],
)
def test_outside_of_a_job(environment, error, message):
    with pytest.raises(error, match=message):
        pod_tf_config(environment)


def never(code):
    raise AssertionError(f"ended with {code}")


@pytest.mark.parametrize("code", [0, 1, 143])
def test_only_a_chief_that_succeeds_is_done(tmp_path, code):
    assert run_task(tmp_path / "task.json", True, lambda: code, never) == code
    assert (tmp_path / DONE_FILE).exists() == (code == 0)


def test_a_task_that_would_serve_for_ever_ends_with_the_chief(tmp_path):
    ended, codes = threading.Event(), []

    def end(code):
        codes.append(code)
        ended.set()

    def serve():
        (tmp_path / DONE_FILE).touch()  # the chief is done by now
        assert ended.wait(20)
        return 143

    assert run_task(tmp_path / "task.json", False, serve, end, sleep=lambda secs: None) == 0
    assert codes == [0]


def test_a_task_that_ends_before_the_chief_has_its_own_code(tmp_path):
    naps, asleep, over = [], threading.Event(), threading.Event()

    def sleep(secs):
        naps.append(secs)
        asleep.set()
        assert over.wait(20)

    def fail():
        assert asleep.wait(20)  # the chief is looked for, and has not ended
        return 1

    assert run_task(tmp_path / "task.json", False, fail, lambda code: None, sleep) == 1
    assert naps == [2]
    (tmp_path / DONE_FILE).touch()
    over.set()


@pytest.mark.parametrize("is_chief", [True, False])
def test_a_pod_that_comes_back_when_all_is_over_has_nothing_to_do(tmp_path, is_chief):
    (tmp_path / DONE_FILE).touch()
    assert run_task(tmp_path / "task.json", is_chief, lambda: 1 / 0, never) == 0


TASK = ClusterTask("{}", {"train_args": "{}"}, {"model_run_dir": "/r"}, "/r/model")


def run(tmp_path, monkeypatch, play):
    file = tmp_path / "task.json"
    file.write_text(json.dumps(asdict(TASK)))
    monkeypatch.setattr(ClusterTask, "__call__", play)
    return indexed_task.play(file)


def test_it_plays_the_part_of_the_file(tmp_path, monkeypatch):
    played = []
    assert run(tmp_path, monkeypatch, lambda task: played.append(task)) == 0
    assert played == [TASK]


def test_the_reason_is_the_last_line_and_the_task_is_not_started_again(tmp_path, monkeypatch, capsys):
    def fail(task):
        raise TaskFailedError.from_error(ArithmeticError("odd row"))

    code = run(tmp_path, monkeypatch, fail)
    assert 1 <= code < 128  # from 128 on, Kubernetes would start it again
    assert capsys.readouterr().err.strip().splitlines()[-1] == "ArithmeticError: odd row"


def test_a_task_that_sigterm_has_ended_is_started_again(tmp_path, monkeypatch, capsys):
    def end(task):
        raise TaskFailedError.from_error(SystemExit(143))

    assert run(tmp_path, monkeypatch, end) == 143
    assert capsys.readouterr().err == "SIGTERM has ended this task.\n"


def test_another_exit_of_the_users_code_is_an_error(tmp_path, monkeypatch):
    def leave(task):
        raise TaskFailedError.from_error(SystemExit(0))

    assert run(tmp_path, monkeypatch, leave) == 1
