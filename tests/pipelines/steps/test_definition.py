"""Definitions of pipelines as teams have them."""

import sys
import textwrap

import pytest

from pipelines.errors import BadInputError
from pipelines.steps.definition import load_pipeline
from tests.pipelines.steps.conftest import COMPONENTS


@pytest.fixture
def load(team):
    """Returns a function that loads a definition, which follows `COMPONENTS`."""

    def load_it(definition, function=None, **arguments):
        team.file.write_text(COMPONENTS + textwrap.dedent(definition))
        return load_pipeline(team.file, function, arguments)

    return load_it


def text_of(pipeline):
    (write,) = pipeline.components
    return write.exec_properties["text"]


def test_a_function_is_found_or_named_and_takes_arguments_of_the_types_that_it_declares(load):
    assert text_of(load("def create_pipeline(): return pipeline(Write(text='a'))")) == "a"
    definition = """
        def build(name, times: int, factor=0.5, loud: bool = False):
            assert (type(times), type(factor), type(loud)) == (int, float, bool)
            return pipeline(Write(text=f"{name} {times} {factor} {loud}"))
    """
    made = load(definition, "build", name="7", times="3", factor="2", loud="true")
    assert text_of(made) == "7 3 2.0 True"
    assert text_of(load(definition, "build", name="a", times=4)) == "a 4 0.5 False"


PROGRAM = """
import sys

def _create_pipeline(name, root):
    return pipeline(Write(text=f"{name} {sys.argv[1:]}"))

if __name__ == "__main__":
    from tfx.orchestration.%s import *
    Runner = %s
    %s
"""


@pytest.mark.parametrize(
    ("runner", "call"),
    [
        ("local.local_dag_runner.LocalDagRunner", "Runner().run({})"),
        ("beam.beam_dag_runner.BeamDagRunner", "Runner().run(pipeline={})"),
        (
            "kubeflow.v2.kubeflow_v2_dag_runner.KubeflowV2DagRunner",
            "Runner(KubeflowV2DagRunnerConfig(), output_filename='p.json').run({})",
        ),
        ("kubeflow.kubeflow_dag_runner.KubeflowDagRunner", "Runner(config=None).run({})"),
        # As absl's app.run does.
        ("local.local_dag_runner.LocalDagRunner", "Runner().run({}); sys.exit(0)"),
    ],
)
def test_a_program_gives_what_it_passes_to_a_runner_of_tfx(load, runner, call):
    module, _, runner = runner.rpartition(".")
    arguments = list(sys.argv)
    made = load(PROGRAM % (module, runner, call.format("_create_pipeline('taxi', root='r')")))
    assert text_of(made) == "taxi []"
    assert sys.argv == arguments
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    assert LocalDagRunner.run.__qualname__ == "IrBasedRunner.run"
    assert "tfx.orchestration.kubeflow.kubeflow_dag_runner" not in sys.modules


def test_optional_arguments_and_paths_are_converted_too(load):
    definition = """
        from typing import Any, Optional

        def build(
            steps: Optional[int] = None,
            folder: pathlib.Path | None = None,
            rest: Any = None,
            rate: int | float = 1,
        ):
            assert (type(steps), folder.name, type(rest)) == (int, "a", str)
            return pipeline(Write(text=f"{steps} {rate}"))
    """
    given = {"steps": "3", "folder": "x/a", "rest": "7"}
    assert text_of(load(definition, "build", **given, rate="0.5")) == "3 0.5"
    assert text_of(load(definition, "build", **given, rate="2")) == "3 2"
    with pytest.raises(BadInputError, match="build takes int or float"):
        load(definition, "build", **given, rate="x")


@pytest.mark.parametrize(
    "condition",
    [
        '__name__ == "__main__"',
        '"__main__" == __name__',
        '__name__ in ("__main__", "__mp_main__")',
        "(name := __name__) == MAIN",
        'False:\n            pass\n        elif __name__ == "__main__"',
    ],
)
def test_a_program_may_ask_for_its_name_in_many_ways_and_use_the_result_of_the_run(load, condition):
    made = load(f"""
        import argparse
        import tfx.orchestration.kubeflow.kubeflow_dag_runner
        from tfx.orchestration.local.local_dag_runner import LocalDagRunner

        MAIN = "__main__"
        parser = argparse.ArgumentParser()
        parser.add_argument("--text", default="from argparse")
        text = parser.parse_args().text

        if {condition}:
            result = LocalDagRunner().run(pipeline(Write(text=text)))
            print(result.status)
    """)
    assert text_of(made) == "from argparse"


@pytest.mark.parametrize(
    ("definition", "function", "arguments", "message"),
    [
        ("def build(a, b=1): pass", "build", {"b": "2"}, r"build needs a: give --arg a=VALUE"),
        ("def build(a): pass", "build", {"a": "1", "c": "2"}, r"has no argument 'c'. Its arguments: a"),
        ("def build(a: int): pass", "build", {"a": "x"}, r"--arg a=x: .*build takes int"),
        ("def build(): return 7", "build", {}, r"gives no TFX pipeline. Received: int"),
        ("def build(): pass", "buidl", {}, r"does not define 'buidl'. Its functions are: build"),
        ("value = 1", None, {}, r"passes no pipelines to a runner of TFX. .*:FUNCTION"),
        ("value = 1", None, {"a": "1"}, r"--arg a: name the function"),
        ("def create_pipeline(a): pass", None, {}, r":create_pipeline needs a: give --arg a=VALUE"),
        ("def build(:", None, {}, r"invalid syntax"),
        ("raise SystemExit(3)", None, {}, r"ended with exit code 3"),
        ("def build(): raise SystemExit(0)", "build", {}, r"gives no TFX pipeline. Received: NoneType"),
        ("def build(a: list): pass", "build", {"a": "1"}, r"takes <class 'list'>: give it in \[pipeline\]"),
        ("def build(): raise ValueError('odd')", "build", {}, r"ValueError: odd \(.*\.py, line \d+\)"),
        ("import no_such_module", None, {}, r"No module named 'no_such_module' \(.*, line \d+\)"),
    ],
)
def test_a_definition_that_cannot_be_used_is_refused(load, definition, function, arguments, message):
    with pytest.raises(BadInputError, match=message):
        load(definition, function, **arguments)


def test_a_file_that_is_not_there_or_whose_name_is_taken_is_refused(tmp_path):
    with pytest.raises(BadInputError, match=r"--pipeline .*/no\.py: there is no such file"):
        load_pipeline(tmp_path / "no.py")
    (tmp_path / "json.py").write_text("def create_pipeline(): pass")
    with pytest.raises(BadInputError, match=r"the module name 'json' is taken .* Rename the file"):
        load_pipeline(tmp_path / "json.py")
