import json
import threading

import pytest

from pipelines.kubeflow.indexed_task import (
    CLUSTER_VARIABLE,
    DONE_FILE,
    INDEX_VARIABLE,
    run_task,
    tf_config_of,
)
from pipelines.kubeflow.training.indexed_jobs import cluster_of

CLUSTER = cluster_of("t", workers=2, ps=2)


@pytest.mark.parametrize(
    ("index", "task"),
    [(0, ("chief", 0)), (1, ("worker", 0)), (2, ("worker", 1)), (3, ("ps", 0)), (4, ("ps", 1))],
)
def test_the_part_belongs_to_the_index(index, task):
    config = json.loads(
        tf_config_of({CLUSTER_VARIABLE: json.dumps(CLUSTER), INDEX_VARIABLE: str(index)})
    )
    assert config["cluster"] == CLUSTER
    kind, number = task
    assert config["task"] == {"type": kind, "index": number}
    assert f"t-{index}.t:2222" == CLUSTER[kind][number]


def test_an_index_that_the_cluster_does_not_have():
    with pytest.raises(ValueError, match=r"has 5 tasks.*JOB_COMPLETION_INDEX=5"):
        tf_config_of({CLUSTER_VARIABLE: json.dumps(CLUSTER), INDEX_VARIABLE: "5"})


@pytest.mark.parametrize("missing", [CLUSTER_VARIABLE, INDEX_VARIABLE])
def test_outside_of_a_job(missing):
    environ = {CLUSTER_VARIABLE: json.dumps(CLUSTER), INDEX_VARIABLE: "0"}
    del environ[missing]
    with pytest.raises(LookupError, match=missing):
        tf_config_of(environ)


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
