import contextlib
import logging

from components.trainer import task_logs

STEP = "2026-01-02 03:04:05,678 INFO tensorflow: loss = 0.5, step = {}\n"


def test_the_steps_of_the_chief_and_evaluations_are_shown_as_they_are_logged(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    chief = tmp_path / "chief-0.log"
    chief.write_text(STEP.format(1))  # of an earlier attempt
    with task_logs.shown_here(str(tmp_path)):
        with chief.open("a") as file:
            file.write(STEP.format(2) + "I0000 from C++\n" + STEP.format(3)[:-5])
        (tmp_path / "evaluator-0.log").write_text("x INFO tensorflow: Saving dict for ...\n")
        (tmp_path / "worker-0.log").write_text(STEP.format(9))
        with chief.open("a") as file:
            file.write(STEP.format(3)[-5:])
    assert sorted(caplog.messages) == ["Saving dict for ...", "loss = 0.5, step = 2", "loss = 0.5, step = 3"]
    assert {record.name for record in caplog.records} == {"components.trainer.task_logs"}


def test_nothing_is_shown_of_tasks_that_never_started(tmp_path, caplog):
    with task_logs.shown_here(str(tmp_path / "logs")):
        pass
    assert not caplog.messages


@contextlib.contextmanager
def own_loggers():
    """Gives the root logger and TensorFlow's back as they were."""
    loggers = [logging.getLogger(), logging.getLogger("tensorflow")]
    before = [(one.handlers[:], one.level, one.propagate) for one in loggers]
    try:
        yield
    finally:
        for one, (handlers, level, propagate) in zip(loggers, before, strict=True):
            one.handlers[:], one.propagate = handlers, propagate
            one.setLevel(level)


def test_a_task_logs_each_line_once_and_as_it_is_looked_for(capsys):
    with own_loggers():
        logging.getLogger("tensorflow").addHandler(logging.StreamHandler())
        logging.getLogger().addHandler(logging.StreamHandler())
        task_logs.write_to_stderr()
        logging.getLogger("tensorflow").info("loss = 0.5, step = 2")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" INFO tensorflow: loss = 0.5, step = 2")
