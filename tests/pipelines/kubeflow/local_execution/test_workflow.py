import threading

import pytest
from kfp import dsl

from components.interruption import interruption
from pipelines.errors import BadInputError
from pipelines.kubeflow.local_execution.containers import Process
from pipelines.kubeflow.local_execution.driver import CompiledPipeline
from pipelines.kubeflow.local_execution.launcher import ContainerFailedError
from tests.pipelines.kubeflow.local_execution.little_pipelines import compiled, container, workflow

WRITE = container(
    "write",
    {"text": str, "copy": dsl.OutputPath(str), "size": dsl.OutputPath(int)},
    "pathlib.Path(sys.argv[2]).write_text(sys.argv[1])\n"
    "pathlib.Path(sys.argv[3]).write_text(str(len(sys.argv[1])))",
    *("text", "copy", "size"),
)
READ = container(
    "read",
    {"text": str, "size": int, "said": dsl.OutputPath(str)},
    "said = [*sys.argv[1:3], os.getcwd() != '/', sorted(os.listdir())]\n"
    "pathlib.Path(sys.argv[3]).write_text(json.dumps(said))",
    *("text", "size", "said"),
)
SHOW = container(
    "show",
    {"said": str, "run": str},
    "pathlib.Path(sys.argv[3]).write_text('\\n'.join(sys.argv[1:3]))",
    *("said", "run", "SHOWN"),
)


def shown(tmp_path):
    """Returns the pipeline that writes, reads, and shows the text read in a file."""

    def pipeline(text: str = "abc"):
        written = WRITE(text=text)
        read = READ(text=written.outputs["copy"], size=written.outputs["size"])
        show = SHOW(said=read.outputs["said"], run=dsl.PIPELINE_JOB_ID_PLACEHOLDER)
        show.set_caching_options(False)

    found = compiled(pipeline, tmp_path)
    args = found.specification["deploymentSpec"]["executors"]["exec-show"]["container"]["args"]
    args[args.index("SHOWN")] = str(tmp_path / "shown")
    return found


def test_parameters_go_from_task_to_task(tmp_path):
    pipeline = shown(tmp_path)
    workflow(pipeline, tmp_path, run_id="run-7").run(pipeline.parameters({"text": "hello"}))
    said, run = (tmp_path / "shown").read_text().split("\n")
    assert said == '["hello", "5", true, []]'  # a container begins in an empty folder
    assert run == "run-7"
    assert list((tmp_path / "containers").iterdir()) == []


def test_a_task_with_the_same_inputs_is_taken_from_the_cache(tmp_path):
    pipeline = shown(tmp_path)
    for run_id, text, how in (
        ("run-1", "one", "finished"),
        ("run-2", "one", "cached"),
        ("run-3", "two", "finished"),
    ):
        flow = workflow(pipeline, tmp_path, run_id=run_id)
        flow.run(pipeline.parameters({"text": text}))
        assert flow.observer.ended() == {"write": how, "read": how, "show": "finished"}
    assert (tmp_path / "shown").read_text().startswith('["two", "3"')


FAIL_TWICE = container(
    "fail_twice",
    {"place": str},
    "count = pathlib.Path(sys.argv[1]); number = int(count.read_text() or 0) + 1\n"
    "count.write_text(str(number))\n"
    "sys.exit(0 if number > 2 else f'attempt {number}')",
    "place",
)
TOUCH = container("touch", {"place": str}, "pathlib.Path(sys.argv[1]).write_text('touched')", "place")


def test_a_container_that_fails_is_not_started_again_as_in_kubeflow(tmp_path):
    count = tmp_path / "count"
    count.write_text("")

    def pipeline():
        task = FAIL_TWICE(place=str(count))
        task.set_retry(3, backoff_duration="600s")
        TOUCH(place=str(tmp_path / "behind")).after(task)

    flow = workflow(compiled(pipeline, tmp_path), tmp_path)
    with pytest.raises(ContainerFailedError, match="attempt 1"):
        flow.run({})
    assert flow.observer.ended() == {"fail-twice": "failed"}  # and the next task is omitted
    assert not (tmp_path / "behind").exists()
    assert count.read_text() == "1"


@pytest.mark.parametrize("attempts_before", ["2", ""])
def test_an_exit_handler_runs_whatever_happened(tmp_path, attempts_before):
    count = tmp_path / "count"
    count.write_text(attempts_before)

    def pipeline():
        with dsl.ExitHandler(TOUCH(place=str(tmp_path / "end"))):
            FAIL_TWICE(place=str(count))

    flow = workflow(compiled(pipeline, tmp_path), tmp_path)
    if attempts_before:
        flow.run({})
    else:
        with pytest.raises(ContainerFailedError, match="attempt 1") as caught:
            flow.run({})
        assert caught.value.exit_code == 1
    assert (tmp_path / "end").read_text() == "touched"


MEET = container(
    "meet",
    {"mine": str, "other": str},
    "import time; pathlib.Path(sys.argv[1]).write_text('here')\n"
    "end = time.monotonic() + float(sys.argv[3])\n"
    "while not pathlib.Path(sys.argv[2]).exists():\n"
    "  if time.monotonic() > end: sys.exit('alone')\n"
    "  time.sleep(0.02)",
    *("mine", "other", "SECS"),
)


@pytest.mark.parametrize(("parallelism", "secs"), [(2, "60"), (1, "0.3")])
def test_independent_tasks_run_at_a_time_up_to_the_limit(tmp_path, parallelism, secs):
    def pipeline():
        MEET(mine=str(tmp_path / "a"), other=str(tmp_path / "b"))
        MEET(mine=str(tmp_path / "b"), other=str(tmp_path / "a"))

    found = compiled(pipeline, tmp_path)
    for executor in found.specification["deploymentSpec"]["executors"].values():
        args = executor["container"]["args"]
        args[args.index("SECS")] = secs
    flow = workflow(found, tmp_path, parallelism=parallelism)
    if parallelism == 2:
        flow.run({})
    else:
        with pytest.raises(ContainerFailedError, match="alone"):
            flow.run({})


def test_tasks_that_wait_for_each_other_are_refused(tmp_path):
    task = {"componentRef": {"name": "comp-a"}, "cachingOptions": {}}
    tasks = {"a": {**task, "dependentTasks": ["b"]}, "b": {**task, "dependentTasks": ["a"]}}
    pipeline = CompiledPipeline({"pipelineInfo": {"name": "circle"}, "root": {"dag": {"tasks": tasks}}})
    with pytest.raises(BadInputError, match="a, b wait for each other"):
        workflow(pipeline, tmp_path).run({})


WAIT = container(
    "wait",
    {"place": str},
    "pathlib.Path(sys.argv[1]).write_text('on'); import time; time.sleep(600)",
    "place",
)


def test_a_signal_whose_exception_was_dropped_ends_the_containers(tmp_path, handles_signals):
    place = tmp_path / "place"

    def pipeline():
        WAIT(place=str(place))

    def leave_a_request():
        while not place.exists():
            pass
        interruption.reason = "SIGTERM"

    flow = workflow(compiled(pipeline, tmp_path), tmp_path)
    threading.Thread(target=leave_a_request).start()
    with handles_signals():
        flow.run({})
    with pytest.raises(InterruptedError):
        flow.launcher.processes.run(Process(("true",)), tmp_path / "log")
