import os

import pytest
from tfx.types import standard_artifacts

from components.serving_check import model_process


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program in place of the one that imports TensorFlow."""
    path = tmp_path / "program.py"
    path.write_text(
        "import pickle, sys\n"
        "path, request, answers = (sys.stdin.readline().rstrip() for _ in range(3))\n"
        "given = pickle.load(open(request, 'rb')) if request else sys.exit()\n"
        "if 'fail' in given: sys.exit('no memory')\n"
        "pickle.dump((path, given['rows'] * 2), open(answers, 'wb'))\n"
    )
    monkeypatch.setattr(model_process.clean_process, "__file__", str(path))
    yield path
    model_process.discard()


@pytest.fixture
def model(tmp_path):
    """An artifact with a serving model."""
    artifact = standard_artifacts.Model()
    artifact.uri = str(tmp_path / "model")
    (tmp_path / "model" / "Format-Serving").mkdir(parents=True)
    (tmp_path / "model" / "Format-Serving" / "saved_model.pb").touch()
    return artifact


def test_the_process_that_was_prepared_is_the_one_that_answers(program, model):
    model_process.prepare(model)
    (ready,) = model_process._ready
    path = os.path.join(model.uri, "Format-Serving")
    prepared = model_process.take(path)
    assert prepared is ready
    assert prepared.ask({"rows": "ab"}, lambda: 3) == ((path, "abab"), 3)
    assert prepared._process.returncode == 0
    other = model_process.take(path)
    assert other is not prepared
    assert other.ask({"rows": "c"}, lambda: None) == ((path, "cc"), None)


def test_another_model_gets_another_process(program, model):
    model_process.prepare(model)
    taken = model_process.take("/another")
    assert taken.ask({"rows": "a"}, lambda: None) == (("/another", "aa"), None)
    (ready,) = model_process._ready
    model_process.prepare(model)
    assert ready._process.returncode is not None
    assert model_process._ready != [ready]


def test_a_process_that_has_died_meanwhile_is_replaced(program, model):
    """The system kills one when memory is short: the Evaluator and the model share it."""
    model_process.prepare(model)
    (dead,) = model_process._ready
    dead._process.kill()
    dead._process.wait()
    path = os.path.join(model.uri, "Format-Serving")
    assert model_process.take(path).ask({"rows": "a"}, lambda: None) == ((path, "aa"), None)


def test_a_model_whose_loading_has_a_limit_is_loaded_anew(program, model):
    model_process.prepare(model)
    (ready,) = model_process._ready
    taken = model_process.take(ready.path, loads_now=True)
    assert taken is not ready
    assert ready._process.returncode is not None
    assert taken.ask({"rows": "a"}, lambda: None) == ((ready.path, "aa"), None)


def test_a_process_that_nothing_takes_is_ended_and_none_starts_without_a_model(program, model):
    model_process.prepare(model)
    (waiting,) = model_process._ready
    assert waiting._process.poll() is None
    model_process.discard()
    assert waiting._process.returncode is not None
    assert model_process._ready == []
    os.remove(os.path.join(model.uri, "Format-Serving", "saved_model.pb"))
    model_process.prepare(model)
    assert model_process._ready == []


def test_a_failure_of_the_process_and_of_this_one_are_told(program):
    with pytest.raises(RuntimeError, match="exited with code 1: no memory"):
        model_process.take("p").ask({"fail": True}, lambda: None)
    ended = model_process.take("p")
    ended._process.kill()
    ended._process.wait()
    with pytest.raises(RuntimeError, match="exited with code -9"):
        ended.ask({"rows": "a"}, lambda: None)
    asked = model_process.take("p")
    with pytest.raises(ZeroDivisionError):
        asked.ask({"rows": "a"}, lambda: 1 / 0)
    assert asked._process.returncode is not None


def test_a_model_that_does_not_answer_in_time_is_given_up(program, monkeypatch):
    program.write_text("import sys, threading\nthreading.Event().wait()\n")
    monkeypatch.setattr(model_process, "MAX_SECONDS", 0.01)
    with pytest.raises(TimeoutError, match=r"not responded within 0\.01 s"):
        model_process.take("p").ask({}, lambda: None)
