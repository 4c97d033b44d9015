import components  # noqa: I001  Before TFX: makes TFDV importable.

import hashlib
import os

import pytest
from tfx.orchestration.pipeline import Pipeline

from components.example_gen import executor
from components.example_gen.files import PlannedFiles
from components.beam.beam_executor import IN_PROCESS_RUNNER
from pipelines.runs.definitions.csv_to_serving import NO_TFX_PACKAGE
from pipelines.errors import RunFailedError
from pipelines.root import Root
from pipelines.steps.planning import plan_steps
from pipelines.steps.running import run_steps
from pipelines.steps.step_folders import StepFolders


@pytest.fixture
def folder(tmp_path):
    """A folder of two files, one of them of the split `eval`."""
    folder = tmp_path / "data"
    (folder / "eval").mkdir(parents=True)
    for name in ("a.csv", "eval/b.csv"):
        (folder / name).write_text("x,y\n1,0\n2,1\n")
    return folder


def fingerprint(folder):
    return PlannedFiles(str(folder), ["*.csv", "eval/*.csv"]).fingerprint


def test_the_content_counts_and_not_the_time(folder, tmp_path):
    before = fingerprint(folder)
    status = (folder / "a.csv").stat()
    os.utime(folder / "a.csv", (1, 1))
    assert fingerprint(folder) == before
    assert fingerprint(folder.rename(tmp_path / "moved")) == before
    file = tmp_path / "moved" / "a.csv"
    file.write_text("x,y\n1,0\n2,2\n")  # as many bytes
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fingerprint(tmp_path / "moved") != before


def test_names_and_splits_count(folder):
    before = fingerprint(folder)
    (folder / "eval" / "b.csv").rename(folder / "eval" / "c.csv")
    renamed = fingerprint(folder)
    (folder / "eval" / "c.csv").rename(folder / "c.csv")
    assert len({before, renamed, fingerprint(folder)}) == 3


class Events(list):
    def step_started(self, plan):
        pass

    def step_finished(self, step, reused, elapsed_secs, reason):
        self.append(reused)

    def step_failed(self, plan, elapsed_secs):
        self.append("failed")


@pytest.fixture
def run(folder, tmp_path):
    """Returns a function that runs CsvExampleGen on a folder of one file; `run.events` is the log of it."""
    (folder / "eval" / "b.csv").unlink()
    (folder / "eval").rmdir()
    events = Events()
    root = Root(tmp_path / "root")

    def run_it(run_id, **given):
        pipeline = Pipeline(
            pipeline_name="test",
            pipeline_root="elsewhere",
            components=[components.CsvExampleGen(input_base=str(folder), **given)],
            enable_cache=True,
            beam_pipeline_args=[IN_PROCESS_RUNNER, NO_TFX_PACKAGE],
        )
        plan = plan_steps(pipeline, root, run_id, {})
        run_steps(plan, StepFolders(root.artifacts), run_id, events)

    run_it.events = events
    return run_it


def test_a_file_that_was_written_anew_is_taken_from_the_cache(folder, run):
    run("run-1")
    content = (folder / "a.csv").read_text()
    (folder / "a.csv").unlink()
    (folder / "a.csv").write_text(content)
    os.utime(folder / "a.csv", (1, 1))
    run("run-2")
    (folder / "a.csv").write_text(content + "3,1\n")
    run("run-3")
    assert run.events == [False, True, False]


def test_a_file_that_is_replaced_before_it_is_read_fails_the_component(folder, run, monkeypatch):
    file = folder / "a.csv"
    old, read = file.read_text(), executor.read_batches

    def late(*arguments):
        file.write_text("x,y,z\n1,0,5\n")  # other columns
        return read(*arguments)

    monkeypatch.setattr(executor, "read_batches", late)
    with pytest.raises(RunFailedError, match=r"a\.csv was changed after") as caught:
        run("run-1")
    assert caught.value.is_bad_input
    monkeypatch.undo()
    file.write_text(old)
    run("run-2")
    assert run.events == ["failed", False]  # nothing of the failed one is reused


def test_the_files_that_are_given_are_read_or_none(folder, run):
    digest = hashlib.sha256((folder / "a.csv").read_bytes()).hexdigest()
    run("run-1", files={"a.csv": digest})
    for files in ({"a.csv": "0" * 64}, {"a.csv": digest, "b.csv": digest}):
        with pytest.raises(RunFailedError, match=r"(a\.csv was changed|b\.csv was deleted) after"):
            run("run-2", files=files)
    assert run.events == [False, "failed", "failed"]
