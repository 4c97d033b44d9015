import pytest

from components.serving_check import model_process


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program in place of the one that imports TensorFlow."""
    path = tmp_path / "program.py"
    path.write_text(
        "import pickle, sys\n"
        "request, answers = (sys.stdin.readline().rstrip() for _ in range(2))\n"
        "given = pickle.load(open(request, 'rb')) if request else sys.exit()\n"
        "if 'fail' in given: sys.exit('no memory')\n"
        "pickle.dump(given['path'] * 2, open(answers, 'wb'))\n"
    )
    monkeypatch.setattr(model_process.clean_process, "__file__", str(path))
    yield path
    model_process.discard()


def test_the_process_that_was_prepared_is_the_one_that_answers(program):
    model_process.prepare()
    model_process.prepare()
    prepared = model_process.take()
    assert prepared.ask({"path": "ab"}, lambda: 3) == ("abab", 3)
    assert prepared._process.returncode == 0
    other = model_process.take()
    assert other is not prepared
    assert other.ask({"path": "c"}, lambda: None) == ("cc", None)


def test_a_process_that_nothing_takes_is_ended(program):
    model_process.prepare()
    (waiting,) = model_process._ready
    assert waiting._process.poll() is None
    model_process.discard()
    assert waiting._process.returncode is not None
    assert model_process._ready == []


def test_a_failure_of_the_process_and_of_this_one_are_told(program):
    with pytest.raises(RuntimeError, match="ended with code 1: no memory"):
        model_process.take().ask({"fail": True}, lambda: None)
    ended = model_process.take()
    ended._process.kill()
    ended._process.wait()
    with pytest.raises(RuntimeError, match="ended with code -9"):
        ended.ask({"path": "a"}, lambda: None)
    asked = model_process.take()
    with pytest.raises(ZeroDivisionError):
        asked.ask({"path": "a"}, lambda: 1 / 0)
    assert asked._process.returncode is not None


def test_a_model_that_does_not_answer_in_time_is_given_up(program, monkeypatch):
    program.write_text("import sys, threading\nthreading.Event().wait()\n")
    monkeypatch.setattr(model_process, "MAX_SECONDS", 0.01)
    with pytest.raises(TimeoutError, match=r"not answered within 0\.01 s"):
        model_process.take().ask({}, lambda: None)
