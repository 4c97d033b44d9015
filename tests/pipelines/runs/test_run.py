import html
import itertools
import shutil
import signal
from contextlib import contextmanager

import pytest

from pipelines.beam.runners import RUNNERS, Runner
from pipelines.cli import run as cli
from pipelines.errors import BadInputError, RunFailedError
from pipelines.root.history import read_runs
from pipelines.runs import recorder
from pipelines.runs import run as run_module
from pipelines.steps import running
from tests.pipelines.report.html_checks import dead_links
from tests.pushed_versions import serve_version


class ActingRunner(Runner):
    """Does something before the first component runs, which raises."""

    def __init__(self, act):
        self.act = act

    @contextmanager
    def beam_options(self, config, folder):
        yield from ()
        self.act()


def raise_or_signal(error):
    if isinstance(error, signal.Signals):
        signal.raise_signal(error)
    raise error


@pytest.fixture
def run_with(run_csv, monkeypatch):
    """Returns a function that runs the data with a runner that raises `error`."""

    def run_it(error, *settings, **request):
        monkeypatch.setitem(RUNNERS, "raising", ActingRunner(lambda: raise_or_signal(error)))
        return run_csv(*settings, runner="raising", **request)

    return run_it


@pytest.fixture
def run_pushing(run_csv, root, monkeypatch):
    """Returns a function that runs the data with a runner that pushes version 1000, 1001, ... and fails."""
    versions = itertools.count(1000)

    def run_it(*settings, after_push=lambda: None):
        def act():
            serve_version(root.serving, next(versions), root.records.read_all()[-1].run_id, str(root))
            after_push()
            raise OSError("disk full")

        monkeypatch.setitem(RUNNERS, "pushing", ActingRunner(act))
        return run_csv(*settings, runner="pushing")

    return run_it


def test_the_runner_that_is_chosen_is_the_one_that_runs(run_csv, root, monkeypatch):
    def act():
        assert [record.status for record in read_runs(root)] == ["running"]
        raise RunFailedError("Trainer", "stopped by the chosen runner")

    monkeypatch.setitem(RUNNERS, "local", ActingRunner(lambda: 1 / 0))
    monkeypatch.setitem(RUNNERS, "chosen", ActingRunner(act))
    record = run_csv(runner="chosen")
    assert set(record.graph) == {
        "CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform",
        "Trainer", "Evaluator", "ServingCheck", "Pusher",
    }  # fmt: skip
    assert (record.status, record.reason) == ("failed", "Trainer: stopped by the chosen runner")
    assert read_runs(root) == [record]


def test_the_spans_are_said_at_once_and_noted(run_with, spans, shown):
    record = run_with(RunFailedError("Trainer", "stopped"), "data.spans=last 2", data=spans)
    said = f"data: spans 9..10 (version 1) of {spans}"
    assert shown.getvalue().splitlines()[2] == f"i {said}"
    assert record.notes[0] == said
    assert [span["span"] for span in record.summary()["spans"]] == [9, 10]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (signal.SIGTERM, "interrupted", "stopped by a signal"),
        (signal.SIGINT, "interrupted", "stopped by a signal"),
        (KeyboardInterrupt("of the user's"), "failed", "KeyboardInterrupt: of the user&#39;s"),
        (SystemExit(0), "failed", "SystemExit: 0"),
        (GeneratorExit("odd"), "failed", "GeneratorExit: odd"),
        (OSError("disk full"), "failed", "OSError: disk full"),
    ],
)
def test_however_a_run_ends_its_record_and_report_say_so(
    run_with, root, handles_signals, error, status, reason
):
    record = run_with(error)
    assert (record.status, html.escape(record.reason).replace("&#x27;", "&#39;")) == (status, reason)
    assert reason in (root.runs / f"{record.run_id}.html").read_text()
    assert not root.lock.is_held()


@pytest.mark.parametrize("moment", ["after the push", "ended_record", "write_pages"])
def test_a_run_that_has_pushed_before_a_signal_says_so(
    run_pushing, root, monkeypatch, handles_signals, moment
):
    def raise_signal():
        signal.raise_signal(signal.SIGTERM)

    if moment != "after the push":
        function = getattr(recorder, moment)
        monkeypatch.setattr(
            recorder, moment, lambda *given, **options: raise_signal() or function(*given, **options)
        )
    record = run_pushing(after_push=raise_signal if moment == "after the push" else lambda: None)
    line = record.summary()
    assert (line["status"], line["version"]) == ("pushed", "1000")
    assert line["run_id"] is not None
    assert cli._exit_code(record) == 0
    assert read_runs(root) == [record]


@pytest.mark.more
def test_pages_link_to_no_run_that_retention_has_removed(run_pushing, root):
    run_ids = []
    for number in range(4):
        record = run_pushing("retention.runs=2", f"trainer.train_steps={number + 1}")
        run_ids.append(record.run_id)
        if number == 1:
            shutil.rmtree(root.serving / "1000")  # as the Pusher does
    kept = {record.run_id: record for record in root.records.read_all()}
    assert run_ids[0] not in kept
    assert dead_links(root.runs) == []
    index = (root.runs / "index.html").read_text()
    assert f'"run-{run_ids[0]}"' not in index
    assert f'"run-{run_ids[-1]}"' in index
    assert index.count("<strong>live</strong>") == 1
    # The page of the version that served before was made again: it serves no more.
    before = kept[run_ids[2]]
    page = (root.runs / f"{before.run_id}.html").read_text()
    assert f"{before.version} (kept when this page was made)" in page
    assert f"{before.version} (serving" not in page


@pytest.mark.parametrize("is_bad_input", [True, False])
def test_a_run_that_fails_over_its_input_says_so_by_its_exit_code(run_with, root, is_bad_input):
    record = run_with(RunFailedError("CsvExampleGen", "no rows", is_bad_input=is_bad_input))
    assert record.status == "failed"
    assert read_runs(root) == [record]
    assert cli._exit_code(record) == (2 if is_bad_input else 1)
    shown = []
    cli._say_outcome(shown.append, record)
    assert any("`run --resume` continues" in line for line in shown) is not is_bad_input


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_run_of_kubeflow_is_not_resumed_but_run_again(killed, status):
    shown = []
    record = killed.changed(status=status, reason="it broke", kubeflow_run="run-1")
    cli._say_outcome(shown.append, record)
    assert any("another run continues from here" in line for line in shown)
    assert not any("--resume" in line for line in shown)


@pytest.mark.parametrize("name", ["writing", "local_kubeflow"])
def test_two_runs_do_not_share_a_root_which_is_said_before_the_data_are_read(run_with, root, tmp_path, name):
    never = AssertionError("must not run")
    nothing = str(tmp_path / "nothing.csv")
    with getattr(root.lock, name).held():
        with pytest.raises(BadInputError, match="Another run is in progress"):
            run_with(never)
        with pytest.raises(BadInputError, match="Another run is in progress"):
            run_with(never, data=nothing)
    with pytest.raises(BadInputError, match=r"nothing\.csv"):
        run_with(never, data=nothing)
    assert read_runs(root) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "z"}, "no label column 'z'"),
        ({"runner": "cluster"}, "Available runners: kubeflow, beam, local"),
    ],
)
def test_what_is_refused_leaves_no_root(run_csv, root, changes, message):
    with pytest.raises(BadInputError, match=message):
        run_csv(**changes)
    assert not root.path.exists()


def test_a_run_that_fails_after_its_push_has_pushed(run_pushing):
    record = run_pushing()
    assert (record.status, record.version) == ("pushed", "1000")
    assert record.reason == "after the push: OSError: disk full"


@pytest.fixture
def run_first(run_csv, monkeypatch):
    """Returns a function that runs CsvExampleGen; something happens to its data before."""
    execute, run_executor = run_module.execute, running.run_executor

    def run_it(*settings, before_execution=lambda: None, before_component=lambda: None):
        def execute_late(*arguments):
            before_execution()
            return execute(*arguments)

        def run_the_first(component, *others):
            if component == "StatisticsGen":
                raise RunFailedError(component, "stopped here")
            before_component()
            return run_executor(component, *others)

        monkeypatch.setattr(run_module, "execute", execute_late)
        monkeypatch.setattr(running, "run_executor", run_the_first)
        return run_csv(*settings)

    return run_it


def check_bad_input(record, reason):
    assert (record.status, record.is_bad_input) == ("failed", True)
    assert reason in record.reason


def test_a_file_that_is_replaced_after_it_was_looked_at_is_not_learned_from(run_first, data):
    old = data.read_text()
    record = run_first(before_component=lambda: data.write_text(old.replace("3.5,1", "3.5,0")))
    check_bad_input(record, f"{data} was changed after its fingerprint was taken")
    data.write_text(old)  # the cache has nothing of the other file
    assert run_first().reason == "StatisticsGen: stopped here"


def test_a_file_that_changes_before_it_is_copied_ends_the_run(run_first, data, root):
    text = "\ufeff" + data.read_text()  # the mark makes a copy of it
    data.write_text(text)
    record = run_first(before_execution=lambda: data.write_text(text.replace("3.5,1", "3.5,0")))
    check_bad_input(record, f"{data} was changed while the data were being read")
    assert not list(root.data.glob("[!.]*"))


def test_a_file_that_comes_to_a_span_before_it_is_copied_ends_the_run(run_first, spans, tmp_path):
    file = tmp_path / "span-10" / "v1" / "late.csv"
    record = run_first(
        f"data.path={spans}", "data.spans=last 2", "name=data",
        before_execution=lambda: file.write_text("x,y\n1.5,1\n"),
    )  # fmt: skip
    check_bad_input(record, f"{file} came while the data in {spans} were being read")


def test_a_module_that_changes_after_it_was_imported_ends_the_run(run_first, tmp_path):
    module = tmp_path / "module_that_changes_later.py"
    code = "def preprocessing_fn(inputs): ...\ndef trainer_fn(args, schema): ...\n"
    module.write_text(code)
    record = run_first(f"module.file={module}", before_execution=lambda: module.write_text(code + "A = 1\n"))
    check_bad_input(record, f"The module {module}, or a Python file next to it, was changed")


def test_a_run_that_another_process_has_resumed_is_not_resumed_again(run_with, root, monkeypatch):
    stopped = RunFailedError("Trainer", "x")
    first = run_with(stopped)
    plan = run_module.plan_run

    def plan_while_another_resumes(*arguments):
        root.records.write(first.changed(status="pushed", version="1"))
        return plan(*arguments)

    monkeypatch.setattr(run_module, "plan_run", plan_while_another_resumes)
    with pytest.raises(BadInputError, match=rf"another process has resumed run {first.run_id}"):
        run_with(stopped, resume=True)
    assert root.records.read(first.run_id).status == "pushed"


def test_a_run_that_was_killed_after_its_push_is_resumed(run_with, root):
    stopped = RunFailedError("Trainer", "x")
    first = run_with(stopped)
    root.records.write(first.changed(status="running", finished=None))
    serve_version(root.serving, 1000, first.run_id, str(root))
    resumed = run_with(stopped, resume=True)
    assert (resumed.run_id, resumed.status, resumed.version) == (first.run_id, "pushed", "1000")
