import builtins
import json
import pickle
import re
from pathlib import Path

import apache_beam as beam
import pytest
import tensorflow as tf

from components.errors import SettingError
from components.trainer.task_failure import TaskFailedError
from components.user.code import load_module
from pipelines.steps import causes
from pipelines.steps.causes import MAX_LENGTH, describe_cause, is_setting_error

tf1 = tf.compat.v1
HERE = re.escape(str(Path(__file__)))


def described(function):
    with pytest.raises(Exception) as error:
        function()
    return describe_cause(error.value)


def run_in_a_session(make):
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(make())


def too_high():
    label = tf1.placeholder_with_default(5, [])
    with tf.control_dependencies([tf1.assert_less(label, 3, message="labels must be below 3")]):
        return tf.identity(label)


def divided():
    return tf1.py_func(lambda: 1 // 0, [], tf.int64)


@tf.function
def too_high_in_a_function(label):
    with tf.control_dependencies([tf.debugging.assert_less(label, 3, message="at most 2")]):
        return tf.identity(label)


def raising_map():
    def row(number):
        raise ValueError("row 7 has no price\nmend the file")

    return list(tf.data.Dataset.range(3).map(row))


def raising_py_function():
    def row(number):
        raise ValueError("row 7 has no price")

    dataset = tf.data.Dataset.range(3)
    return list(dataset.map(lambda number: tf.py_function(row, [number], tf.int64)))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda: run_in_a_session(too_high), r"InvalidArgumentError: .*labels must be below 3.*\[5\]"),
        (lambda: run_in_a_session(divided), r"UnknownError: ZeroDivisionError: .*by zero"),
        (lambda: too_high_in_a_function(5), r"InvalidArgumentError: at most 2 .* = 5"),
        (raising_map, "ValueError: row 7 has no price mend the file"),
        (raising_py_function, r"InvalidArgumentError: .*ValueError: row 7 has no price"),
    ],
    ids=["session", "py_func", "function", "map", "py_function"],
)
def test_tensorflow_gives_its_reason_and_not_the_way_there(function, reason):
    text = described(function)
    assert re.fullmatch(rf"{reason}[^\n]* \({HERE}, line \d+\)", text), text
    for noise in ("Graph execution error", "Traceback", "[[", "stack trace", "site-packages"):
        assert noise not in text


class Wrapper:
    """A library: its errors have no frame of the user's code at their end."""

    namespace = {}
    text = (
        "def wrap(function):\n"
        "    try:\n        function()\n"
        "    except Exception as error:\n"
        "        raise RuntimeError('a report of many lines') from error\n"
    )
    exec(compile(text, "<a library>", "exec"), namespace)


def no_label():
    try:
        return {}["tips"]
    except KeyError as error:
        raise ValueError("the settings lack the label") from error


def test_the_users_reason_goes_before_what_it_is_from_and_before_what_a_library_made_of_it():
    for function in (no_label, lambda: Wrapper.namespace["wrap"](no_label)):
        text = described(function)
        assert text.startswith("ValueError: the settings lack the label, from KeyError: 'tips' (")


def test_an_error_of_another_process_is_described_as_if_it_were_of_this_one():
    def described_there():
        with pytest.raises(ValueError, match="the settings") as error:
            no_label()
        raise pickle.loads(pickle.dumps(TaskFailedError.from_error(error.value))).error()

    assert described(described_there) == described(no_label)


def raise_(error):
    raise error


def test_messages_of_several_lines_groups_none_and_long_ones():
    members = [ValueError("one"), KeyError("two")]
    for error, text in (
        (RuntimeError("1 validation error\n  price\n    is no number"), "1 validation error price is"),
        (RuntimeError("not here [while running 'Analyze/Map']"), "RuntimeError: not here ("),
        (builtins.ExceptionGroup("group", members), "ExceptionGroup: ValueError: one; KeyError: 'two' ("),
        (RuntimeError(), "RuntimeError ("),
        (SystemExit(0), "SystemExit: 0 ("),
    ):
        with pytest.raises(BaseException) as raised:
            raise_(error)
        assert text in describe_cause(raised.value)
    text = described(lambda: raise_(ValueError("first " + "x" * 9_000 + " last")))
    assert text.startswith("ValueError: first xxx")
    assert " last (" in text
    assert len(text) < MAX_LENGTH + 300


class Sum(beam.CombineFn):
    def create_accumulator(self):
        return 0

    def add_input(self, accumulator, element):
        try:
            return accumulator + len(element)
        except TypeError as error:
            raise RuntimeError(f"add_input failed on {self!r}") from error

    def merge_accumulators(self, accumulators):
        return sum(accumulators)

    def extract_output(self, accumulator):
        return accumulator


def test_the_reason_of_what_beam_raises_anew(monkeypatch):
    # The wrapping error is a library's there: here nothing in this file counts as the user's own.
    monkeypatch.setattr(causes, "_is_own_code", lambda filename: False)

    def combine():
        with beam.Pipeline("apache_beam.runners.portability.fn_api_runner.FnApiRunner") as pipeline:
            _ = pipeline | beam.Create([1]) | beam.CombineGlobally(Sum())

    assert described(combine) == "TypeError: object of type 'int' has no len()"


def refuse_setting(element):
    raise SettingError(f"no {element}")


def test_a_setting_that_is_refused_within_beam_or_in_another_process():
    with pytest.raises(Exception, match="no label") as error, beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(["label"]) | beam.Map(refuse_setting)
    assert is_setting_error(error.value)
    assert not is_setting_error(ValueError("no label"))
    assert not is_setting_error(None)
    text = WORKER.replace("ValueError", "components.errors.SettingError")
    text = text.format(library=json.__file__, own=__file__)
    assert is_setting_error(RuntimeError(text))
    assert not is_setting_error(RuntimeError(f"something else says: {text}"))


WORKER = """Traceback (most recent call last):
  File "{library}", line 310, in _execute
    response = task()
  File "{own}", line 7, in parse
    raise ValueError(
ValueError: a cell is
no number

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{library}", line 1500, in process
    raise
ValueError: a cell is
no number [while running 'Parse']
"""


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("", ""),
        (
            "Pipeline BeamApp-1_2 failed in state FAILED: java.lang.RuntimeException: Error received from "
            "SDK harness for instruction 17: ",
            "\n\tat java.base/java.util.concurrent.CompletableFuture.get(CompletableFuture.java:396)\n",
        ),
    ],
    ids=["worker processes", "flink"],
)
def test_what_a_worker_in_another_process_raised(before, behind):
    text = WORKER.format(library=json.__file__, own=__file__)
    found = describe_cause(RuntimeError(before + text + behind))
    assert found == f"ValueError: a cell is no number ({__file__}, line 7)"
    assert not is_setting_error(RuntimeError(before + text + behind))


def test_our_messages_are_told_where_we_are_installed(monkeypatch):
    project = str(Path(causes.__file__).parents[2])
    monkeypatch.setattr(causes.sysconfig, "get_path", lambda kind: project)  # as site-packages
    found = described(lambda: load_module("no_such_package.taxi"))
    assert found.startswith("ModuleNotFoundError: No module 'no_such_package'")
    assert "set PYTHONPATH to the directory that holds it" in found
