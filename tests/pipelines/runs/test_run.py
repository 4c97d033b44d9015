import html
import shutil
import signal
from contextlib import contextmanager

import pytest

from components.pusher.provenance import Provenance
from pipelines.beam.runners import RUNNERS, Runner
from pipelines.cli import run as cli
from pipelines.errors import BadInputError, RunFailedError
from pipelines.root import Root
from pipelines.root.history import read_runs
from pipelines.runs import recorder
from pipelines.runs import run as run_module
from pipelines.runs.plan.run_plan import RunRequest
from pipelines.runs.run import run
from pipelines.steps import running
from pipelines.terminal.progress import Progress
from tests.pipelines.report.html_checks import dead_links
from tests.pushed_versions import write_version


class RecordingRunner(Runner):
    """Raises before the first component runs."""

    def __init__(self, root, error):
        self.root, self.error = root, error
        self.statuses = None

    @contextmanager
    def beam_options(self, config, folder):
        yield from ()
        self.statuses = [record.status for record in read_runs(Root(self.root))]
        if isinstance(self.error, signal.Signals):
            signal.raise_signal(self.error)
        raise self.error


class NoCapture:
    def move_output(self, log):
        self.log = log


@pytest.fixture
def run_with(data, tmp_path, display, monkeypatch):
    """Returns a function that runs the data with a runner that raises `error`."""

    def run_it(error):
        runner = RecordingRunner(tmp_path / "root", error)
        monkeypatch.setitem(RUNNERS, "recording", runner)
        request = RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y", runner="recording")
        return run(request, Progress(display), NoCapture()), runner

    return run_it


def test_the_runner_that_is_chosen_is_the_one_that_runs(run_with, tmp_path, monkeypatch):
    class NotChosen(Runner):
        @contextmanager
        def beam_options(self, config, folder):
            yield from ()
            raise AssertionError("this runner was not chosen")

    monkeypatch.setitem(RUNNERS, "local", NotChosen())
    record, runner = run_with(RunFailedError("Trainer", "stopped by the recording runner"))
    assert set(record.graph) == {
        "CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform",
        "Trainer", "Evaluator", "ServingCheck", "Pusher",
    }  # fmt: skip
    assert runner.statuses == ["running"]
    assert (record.status, record.reason) == ("failed", "Trainer: stopped by the recording runner")
    assert read_runs(Root(tmp_path / "root")) == [record]


def test_the_spans_are_said_at_once_and_noted(spans, tmp_path, display, shown, monkeypatch):
    runner = RecordingRunner(tmp_path / "root", RunFailedError("Trainer", "stopped"))
    monkeypatch.setitem(RUNNERS, "recording", runner)
    request = RunRequest(
        root=Root(tmp_path / "root"), data=spans, label="y", runner="recording",
        settings=("data.spans=last 2",),
    )  # fmt: skip
    record = run(request, Progress(display), NoCapture())
    said = f"data: spans 9..10 (version 1) of {spans}"
    assert shown.getvalue().splitlines()[2] == f"! {said}"
    assert record.notes[0] == said
    assert [span["span"] for span in record.summary()["spans"]] == [9, 10]


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
    run_with, tmp_path, handles_signals, error, status, reason
):
    record, _ = run_with(error)
    assert (record.status, html.escape(record.reason).replace("&#x27;", "&#39;")) == (status, reason)
    assert reason in (tmp_path / "root" / "runs" / f"{record.run_id}.html").read_text()
    assert not Root(tmp_path / "root").lock.is_held()


@pytest.mark.parametrize("moment", ["after the push", "as the record is written", "in the pages"])
def test_a_run_that_has_pushed_before_a_signal_says_so(
    data, tmp_path, display, monkeypatch, handles_signals, moment
):
    root = tmp_path / "root"

    class PushingRunner(Runner):
        @contextmanager
        def beam_options(self, config, folder):
            yield from ()
            run_id = Root(root).records.read_all()[-1].run_id
            base = root / "serving"
            write_version(Provenance(run_id, str(root)), str(base / "1000"), str(base))
            if moment == "after the push":
                signal.raise_signal(signal.SIGTERM)
            raise OSError("the rest")

    def with_signal(function):
        def call(*arguments, **options):
            signal.raise_signal(signal.SIGTERM)
            return function(*arguments, **options)

        return call

    if moment == "as the record is written":
        monkeypatch.setattr(recorder, "ended_record", with_signal(recorder.ended_record))
    if moment == "in the pages":
        monkeypatch.setattr(recorder, "write_pages", with_signal(recorder.write_pages))
    monkeypatch.setitem(RUNNERS, "pushing", PushingRunner())
    request = RunRequest(root=Root(root), data=str(data), label="y", runner="pushing")
    record = run(request, Progress(display), NoCapture())
    line = record.summary()
    assert (line["status"], line["version"]) == ("pushed", "1000")
    assert line["run_id"] is not None
    assert cli._exit_code(record) == 0
    assert read_runs(Root(root)) == [record]


def test_pages_link_to_no_run_that_retention_has_removed(data, tmp_path, display, monkeypatch):
    root, run_ids = tmp_path / "root", []

    class PushingRunner(Runner):
        @contextmanager
        def beam_options(self, config, folder):
            yield from ()
            run_id = Root(root).records.read_all()[-1].run_id
            version = str(1000 + len(run_ids))
            base = root / "serving"
            write_version(Provenance(run_id, str(root)), str(base / version), str(base))
            raise OSError("disk full")

    monkeypatch.setitem(RUNNERS, "pushing", PushingRunner())
    for number in range(4):
        request = RunRequest(
            root=Root(root), data=str(data), label="y", runner="pushing",
            settings=("retention.runs=2", f"trainer.train_steps={number + 1}"),
        )  # fmt: skip
        record = run(request, Progress(display), NoCapture())
        run_ids.append(record.run_id)
        if number == 1:
            shutil.rmtree(root / "serving" / "1000")  # as the Pusher does
    kept = [one.run_id for one in Root(root).records.read_all()]
    assert run_ids[0] not in kept
    assert dead_links(root / "runs") == []
    index = (root / "runs" / "index.html").read_text()
    assert f'"run-{run_ids[0]}"' not in index
    assert f'"run-{run_ids[-1]}"' in index
    assert index.count("<strong>live</strong>") == 1
    # The page of the version that served before was made again: it serves no more.
    (before,) = (one for one in Root(root).records.read_all() if one.run_id == run_ids[2])
    page = (root / "runs" / f"{before.run_id}.html").read_text()
    assert f"{before.version} (kept when this page was made)" in page
    assert f"{before.version} (serving" not in page


@pytest.mark.parametrize("is_bad_input", [True, False])
def test_a_run_that_fails_over_its_input_says_so_by_its_exit_code(run_with, tmp_path, is_bad_input):
    record, _ = run_with(RunFailedError("CsvExampleGen", "no rows", is_bad_input=is_bad_input))
    assert record.status == "failed"
    assert read_runs(Root(tmp_path / "root")) == [record]
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
def test_two_runs_do_not_share_a_root(run_with, tmp_path, name):
    with (
        getattr(Root(tmp_path / "root").lock, name).held(),
        pytest.raises(BadInputError, match="Another run is in progress"),
    ):
        run_with(AssertionError("must not run"))
    assert read_runs(Root(tmp_path / "root")) == []


@pytest.mark.parametrize("name", ["writing", "local_kubeflow"])
def test_a_root_that_is_busy_is_said_before_the_data_are_read(tmp_path, display, name):
    root = tmp_path / "root"
    request = RunRequest(root=Root(root), data=str(tmp_path / "nothing.csv"), label="y")
    with (
        getattr(Root(root).lock, name).held(),
        pytest.raises(BadInputError, match="Another run is in progress"),
    ):
        run(request, Progress(display), NoCapture())
    with pytest.raises(BadInputError, match=r"nothing\.csv"):
        run(request, Progress(display), NoCapture())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "z"}, "no label column 'z'"),
        ({"runner": "cluster"}, "Available runners: kubeflow, beam, local"),
    ],
)
def test_what_is_refused_leaves_no_root(data, tmp_path, display, changes, message):
    request = {"root": Root(tmp_path / "root"), "data": str(data), "label": "y", **changes}
    with pytest.raises(BadInputError, match=message):
        run(RunRequest(**request), Progress(display), NoCapture())
    assert not (tmp_path / "root").exists()


def test_a_run_that_fails_after_its_push_has_pushed(data, tmp_path, display, monkeypatch):
    root = tmp_path / "root"

    class PushingRunner(Runner):
        @contextmanager
        def beam_options(self, config, folder):
            yield from ()
            base = root / "serving"
            run_id = Root(root).records.read_all()[-1].run_id
            write_version(Provenance(run_id, str(root)), str(base / "1000"), str(base))
            raise OSError("disk full")

    monkeypatch.setitem(RUNNERS, "pushing", PushingRunner())
    request = RunRequest(root=Root(root), data=str(data), label="y", runner="pushing")
    record = run(request, Progress(display), NoCapture())
    assert (record.status, record.version) == ("pushed", "1000")
    assert record.reason == "after the push: OSError: disk full"


@pytest.fixture
def run_first(data, tmp_path, display, monkeypatch):
    """Returns a function that runs CsvExampleGen after `happens`, with settings."""
    run_executor = running.run_executor

    def run_it(happens, *settings):
        def run_the_first(component, *others):
            if component == "StatisticsGen":
                raise RunFailedError(component, "stopped here")
            happens()
            return run_executor(component, *others)

        monkeypatch.setattr(running, "run_executor", run_the_first)
        request = RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y", settings=settings)
        return run(request, Progress(display), NoCapture())

    return run_it


def test_a_file_that_is_replaced_after_it_was_looked_at_is_not_learned_from(run_first, data):
    old = data.read_text()
    record = run_first(lambda: data.write_text(old.replace("3.5,1", "3.5,0")))
    assert (record.status, record.is_bad_input) == ("failed", True)
    assert f"{data} was changed after its fingerprint was taken" in record.reason
    data.write_text(old)  # the cache has nothing of the other file
    assert run_first(lambda: None).reason == "StatisticsGen: stopped here"


def test_a_file_that_changes_before_it_is_copied_ends_the_run(run_first, data, tmp_path, monkeypatch):
    data.write_text("\ufeff" + data.read_text())  # the mark makes a copy of it
    execute = run_module.execute

    def late(*arguments):
        data.write_text(data.read_text().replace("3.5,1", "3.5,0"))
        return execute(*arguments)

    monkeypatch.setattr(run_module, "execute", late)
    record = run_first(lambda: None)
    assert (record.status, record.is_bad_input) == ("failed", True)
    assert f"{data} was changed while the data were being read" in record.reason
    assert not list((tmp_path / "root" / "data").glob("[!.]*"))


def test_a_file_that_comes_to_a_span_before_it_is_copied_ends_the_run(
    run_first, spans, tmp_path, monkeypatch
):
    execute, late_file = run_module.execute, tmp_path / "span-10" / "v1" / "late.csv"

    def late(*arguments):
        late_file.write_text("x,y\n1.5,1\n")
        return execute(*arguments)

    monkeypatch.setattr(run_module, "execute", late)
    record = run_first(lambda: None, f"data.path={spans}", "data.spans=last 2", "name=data")
    assert (record.status, record.is_bad_input) == ("failed", True)
    assert f"{late_file} came while the data in {spans} were read" in record.reason


def test_a_module_that_changes_after_it_was_imported_ends_the_run(run_first, tmp_path, monkeypatch):
    module = tmp_path / "module_that_changes_later.py"
    code = "def preprocessing_fn(inputs): ...\ndef trainer_fn(args, schema): ...\n"
    module.write_text(code)
    execute = run_module.execute

    def late(*arguments):
        module.write_text(code + "A = 1\n")
        return execute(*arguments)

    monkeypatch.setattr(run_module, "execute", late)
    record = run_first(lambda: None, f"module.file={module}")
    assert (record.status, record.is_bad_input) == ("failed", True)
    assert f"The module {module}, or a Python file next to it, was changed" in record.reason


def test_a_run_that_another_process_has_resumed_is_not_resumed_again(data, tmp_path, display, monkeypatch):
    root = Root(tmp_path / "root")
    monkeypatch.setitem(RUNNERS, "stops", RecordingRunner(root, RunFailedError("Trainer", "x")))
    request = {"root": root, "data": str(data), "label": "y", "runner": "stops"}
    first = run(RunRequest(**request), Progress(display), NoCapture())
    plan = run_module.plan_run

    def plan_while_another_resumes(*arguments):
        root.records.write(first.changed(status="pushed", version="1"))
        return plan(*arguments)

    monkeypatch.setattr(run_module, "plan_run", plan_while_another_resumes)
    with pytest.raises(BadInputError, match=rf"another process has resumed run {first.run_id}"):
        run(RunRequest(**request, resume=True), Progress(display), NoCapture())
    assert root.records.read(first.run_id).status == "pushed"


def test_a_run_that_was_killed_after_its_push_is_resumed(data, tmp_path, display, monkeypatch):
    root = Root(tmp_path / "root")
    monkeypatch.setitem(RUNNERS, "stops", RecordingRunner(root, RunFailedError("Trainer", "x")))
    request = {"root": root, "data": str(data), "label": "y", "runner": "stops"}
    first = run(RunRequest(**request), Progress(display), NoCapture())
    root.records.write(first.changed(status="running", finished=None))
    provenance = Provenance(first.run_id, str(root))
    write_version(provenance, str(root.serving / "1000"), str(root.serving))
    resumed = run(RunRequest(**request, resume=True), Progress(display), NoCapture())
    assert (resumed.run_id, resumed.status, resumed.version) == (first.run_id, "pushed", "1000")
