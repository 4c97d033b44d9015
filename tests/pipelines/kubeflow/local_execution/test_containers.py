import sys
import threading

import pytest

from pipelines.kubeflow.local_execution.containers import Container, Process, Processes, as_subprocess


def python(program):
    return Process((sys.executable, "-S", "-c", program))


def test_a_process_has_an_empty_folder_and_what_the_image_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_CALLER", "1")
    monkeypatch.setenv("PYTHONPATH", "/further")
    process = as_subprocess(Container("image", ("python", "-V"), {"A": "1"}, tmp_path))
    assert process.arguments == ("python", "-V")
    assert process.environment["A"] == "1"
    assert "OF_THE_CALLER" not in process.environment
    assert process.environment["PYTHONPATH"].endswith(":/further")
    assert process.environment["HOME"].startswith(str(tmp_path))
    assert process.folder.is_relative_to(tmp_path)
    assert list(process.folder.iterdir()) == []


def test_the_exit_code_the_log_and_a_process_that_takes_too_long(tmp_path):
    log = tmp_path / "logs" / "log"
    assert Processes().run(python("print('said'); raise SystemExit(7)"), log) == 7
    assert log.read_text() == "said\n"
    with pytest.raises(TimeoutError, match=r"longer than 0.2 s"):
        Processes().run(python("import time; time.sleep(600)"), tmp_path / "log", 0.2)


def test_all_are_ended_and_none_begins(tmp_path):
    processes, codes = Processes(), []
    waiting = python("print('on', flush=True)\nimport time; time.sleep(600)")
    log = tmp_path / "log"
    thread = threading.Thread(target=lambda: codes.append(processes.run(waiting, log)))
    thread.start()
    while not log.is_file() or not log.read_text():
        pass
    processes.close()
    thread.join(30)
    assert codes == [-15]
    with pytest.raises(InterruptedError):
        processes.run(waiting, log)
