import json
from dataclasses import asdict

from components.trainer.cluster_task import ClusterTask
from components.trainer.task_failure import TaskFailedError
from pipelines.kubeflow import training_task

TASK = ClusterTask("{}", {"train_args": "{}"}, {"model_run_dir": "/r"}, "/r/model")


def run(tmp_path, monkeypatch, play):
    file = tmp_path / "task.json"
    file.write_text(json.dumps(asdict(TASK)))
    monkeypatch.setattr(ClusterTask, "__call__", play)
    return training_task.main([str(file)])


def test_it_plays_the_part_of_the_file(tmp_path, monkeypatch):
    played = []
    assert run(tmp_path, monkeypatch, lambda task: played.append(task)) == 0
    assert played == [TASK]


def test_the_reason_is_the_last_line_and_the_task_is_not_started_again(
    tmp_path, monkeypatch, capsys
):
    def fail(task):
        raise TaskFailedError.of(ArithmeticError("odd row"))

    code = run(tmp_path, monkeypatch, fail)
    assert 1 <= code < 128  # from 128 on, Kubernetes would start it again
    assert capsys.readouterr().err.strip().splitlines()[-1] == "ArithmeticError: odd row"


def test_a_task_that_sigterm_has_ended_is_started_again(tmp_path, monkeypatch, capsys):
    def end(task):
        raise TaskFailedError.of(SystemExit(143))

    assert run(tmp_path, monkeypatch, end) == 143
    assert capsys.readouterr().err == "SIGTERM has ended this task.\n"


def test_another_exit_of_the_users_code_is_an_error(tmp_path, monkeypatch):
    def leave(task):
        raise TaskFailedError.of(SystemExit(0))

    assert run(tmp_path, monkeypatch, leave) == 1
