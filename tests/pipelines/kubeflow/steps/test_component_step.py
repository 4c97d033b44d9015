"""Steps of a team's pipeline, as the containers of a run on Kubeflow make them."""

import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.dag import END
from pipelines.kubeflow.run_folder import RunFolder
from pipelines.root.history import read_runs
from pipelines.root.rollback import rollback
from pipelines.steps.step_folders import StepFolders
from tests.pipelines.kubeflow.on_kubeflow import TeamOnKubeflow
from tests.pipelines.steps.test_push_destination import DEFINITION as PUSHING


@pytest.fixture
def on_kubeflow(team):
    return TeamOnKubeflow(team, ("Write", "Copy"))


@pytest.fixture
def pushing(team):
    team.define(PUSHING)
    return TeamOnKubeflow(team, ("Write", "Save", "Judge", "Pusher"))


@pytest.fixture
def folder(pushing):
    """The folder into which the pusher pushes."""
    return str(pushing.root.serving)


def components_of(record):
    return [(one.name, one.status, one.reason) for one in record.components]


def test_a_run_is_recorded_as_one_on_this_machine(team, on_kubeflow):
    first = on_kubeflow.run()
    assert (first.status, first.name) == ("finished", "team")
    new = ("finished", "no earlier run has finished it")
    assert components_of(first) == [("Write", *new), ("Copy", *new)]
    assert first.graph == {"Write": [], "Copy": ["Write"]}
    assert team.text() == "ababab"
    again = on_kubeflow.run("run-2")
    reason = f"same data, code and settings as run {first.run_id}"
    assert components_of(again) == [("Write", "cached", reason), ("Copy", "cached", reason)]
    assert (again.status, again.reason) == ("unchanged", "no step has changed")
    changed = on_kubeflow.run("run-3", times=2)
    assert components_of(changed)[1] == ("Copy", "finished", "times 3 -> 2")
    # What Kubeflow has made, a run on this machine reuses.
    assert list(team.run("run-4", times=2).reused) == ["Write", "Copy"]
    assert not list(team.root.artifacts.glob("*/*/.lock"))


def test_a_key_is_that_of_the_run_that_made_the_step(team, on_kubeflow):
    first = on_kubeflow.plan()
    assert on_kubeflow.plan("run-2")["Write"] != first["Write"]  # nobody has made it yet
    on_kubeflow.run("run-3")
    keys = on_kubeflow.plan("run-4")
    assert keys["Write"].startswith(on_kubeflow.record("run-3").run_id)
    (folder,) = team.root.artifacts.glob("Write/*")
    folder.rename(folder.with_name("elsewhere"))
    again = on_kubeflow.plan("run-5")  # KFP's cache must not find what is gone
    assert again["Write"].startswith(on_kubeflow.record("run-5").run_id)
    assert again["Copy"] == keys["Copy"]


@pytest.mark.parametrize("kubeflow", [{"cache": False}, {"components": {"Write": {"cache": False}}}])
def test_a_cache_that_is_turned_off_is_not_used(on_kubeflow, kubeflow):
    on_kubeflow.run(kubeflow=kubeflow)
    record = on_kubeflow.run("run-2", kubeflow=kubeflow)
    assert record.components[0].status == "finished"


def test_a_step_that_failed_says_why_and_the_retry_goes_on(team, on_kubeflow):
    failed = on_kubeflow.run(times=-1)
    assert failed.status == "failed"
    assert failed.reason.startswith("Copy: ValueError: times is negative")
    assert [one[:2] for one in components_of(failed)] == [("Write", "finished"), ("Copy", "failed")]
    assert on_kubeflow.step("Copy") == 1
    assert [record.status for record in read_runs(team.root)] == ["failed"]


def test_a_definition_that_has_changed_since_it_was_compiled_is_refused(team):
    with pytest.raises(BadInputError, match=r"Copy is only in the pipeline of this run.*Compile"):
        TeamOnKubeflow(team, ("Write",)).plan()
    with pytest.raises(BadInputError, match="Trainer is only in the compiled pipeline"):
        TeamOnKubeflow(team, ("Write", "Copy", "Trainer")).plan()


def test_a_step_whose_code_has_changed_since_the_plan_does_nothing(team, on_kubeflow, capsys):
    on_kubeflow.plan()
    team.file.write_text(team.file.read_text().replace("write_text(text)", "write_text('x')"))
    assert on_kubeflow.step("Write") == 1
    assert "its own code changed after the step Plan read" in capsys.readouterr().err
    assert not list(team.root.artifacts.glob("Write/*"))


def test_files_are_those_beside_the_definition_whatever_the_working_directory(team, monkeypatch):
    team.define("""
        @component
        def Read(file: Parameter[str], model: OutputArtifact[Model]):
            pathlib.Path(model.uri, "text").write_text(pathlib.Path(file).read_text())

        def create_pipeline():
            return pipeline(Read(file="beside.txt"))
    """)
    team.file.with_name("beside.txt").write_text("here")
    monkeypatch.chdir("/")
    TeamOnKubeflow(team, ("Read",)).run()
    assert team.text("Read") == "here"


def test_an_importer_has_no_task_and_plan_reads_it(team, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "text").write_text("ab")
    team.define("""
        def create_pipeline(uri, times=2):
            importer = Importer(source_uri=uri, artifact_type=Examples).with_id("Given")
            return pipeline(importer, Copy(examples=importer.outputs["result"], times=times))
    """)
    on_kubeflow = TeamOnKubeflow(team, ("Copy",))
    record = on_kubeflow.run(uri=str(tmp_path / "given"))
    assert team.text() == "abab"
    assert [one[:2] for one in components_of(record)] == [("Given", "finished"), ("Copy", "finished")]


def test_a_model_is_pushed_once(pushing, folder):
    pushing.plan(folder=folder)
    for component in ("Write", "Save", "Judge", "Pusher", "Pusher", "Record"):  # one is tried again
        assert pushing.step(component) == 0
    record = pushing.record()
    assert (record.status, record.serving_version) == ("pushed", record.version)
    again = pushing.run("run-2", folder=folder)
    assert (again.status, again.version) == ("unchanged", None)
    assert pushing.root.versions.served() == [int(record.version)]


def test_a_version_that_came_between_ends_the_run(pushing, folder, capsys):
    pushing.plan("late", folder=folder, text="x")
    assert [pushing.step(component, "late") for component in ("Write", "Save", "Judge")] == [0] * 3
    version = pushing.run("run-1", folder=folder).version
    assert pushing.step("Pusher", "late") == 1
    said = f"version {version} is live now, and none was when the run began"
    assert said in capsys.readouterr().err
    assert pushing.root.versions.served() == [int(version)]


def test_a_retry_does_not_push_what_was_rolled_back(pushing, folder, capsys):
    first = pushing.run(folder=folder).version
    pushing.plan("run-2", folder=folder, text="b")
    for component in ("Write", "Save", "Judge", "Pusher"):
        assert pushing.step(component, "run-2") == 0
    second = pushing.root.versions.serving()
    # As if the pod had been killed after the push.
    StepFolders(pushing.root.artifacts).all_finished("Pusher")[-1].folder.joinpath("step.json").unlink()
    rollback(pushing.root)
    assert pushing.step("Pusher", "run-2") == 1
    assert f"version {second}, which an earlier attempt" in capsys.readouterr().err
    assert pushing.root.versions.served() == [int(first)]


@pytest.mark.parametrize("is_late", [False, True])
def test_what_is_imported_must_not_change_after_the_plan(team, tmp_path, capsys, is_late):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "text").write_text("ab")
    team.define(f"""
        @component
        def Read(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
            file = pathlib.Path(examples.uri, "text")
            pathlib.Path(model.uri, "text").write_text(file.read_text())
            if {is_late}:
                file.write_text("changed")

        def create_pipeline(uri):
            importer = Importer(source_uri=uri, artifact_type=Examples).with_id("Given")
            return pipeline(importer, Read(examples=importer.outputs["result"]))
    """)
    on_kubeflow = TeamOnKubeflow(team, ("Read",))
    on_kubeflow.plan(uri=str(tmp_path / "given"))
    if not is_late:
        (tmp_path / "given" / "text").write_text("changed")
    assert on_kubeflow.step("Read") == 2
    assert "given was changed after its fingerprint was taken" in capsys.readouterr().err
    assert not StepFolders(team.root.artifacts).all_finished("Read")


@pytest.mark.more
def test_the_data_of_tfx_own_example_gen_must_not_change_after_the_plan(team, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    (data / "some.csv").write_text("a,b\n1,2\n")
    team.define("""
        from tfx.components import CsvExampleGen

        def create_pipeline(folder):
            return pipeline(CsvExampleGen(input_base=folder))
    """)
    on_kubeflow = TeamOnKubeflow(team, ("CsvExampleGen",))
    on_kubeflow.plan(folder=str(data))
    (data / "some.csv").write_text("a,b\n3,4\n")
    assert on_kubeflow.step("CsvExampleGen") == 2
    assert "some.csv was changed after its fingerprint was taken" in capsys.readouterr().err
    (data / "some.csv").write_text("a,b\n1,2\n")
    assert on_kubeflow.step("CsvExampleGen") == 0


def test_two_runs_at_a_time_do_not_disturb_each_other(pushing, folder):
    for run in ("run-1", "run-2"):
        pushing.plan(run, folder=folder)
    for component in ("Write", "Save", "Judge"):
        assert [pushing.step(component, run) for run in ("run-1", "run-2")] == [0, 0]
    ends = [RunFolder(pushing.root, run).read_step("Save").reused for run in ("run-1", "run-2")]
    assert ends == [False, True]
    assert len(StepFolders(pushing.root.artifacts).all_finished("Save")) == 1
    assert pushing.step("Pusher", "run-1") == 0
    assert [pushing.step(component, "run-2") for component in ("Pusher", END)] == [1, 0]
    reason = f"run {pushing.record('run-1').run_id} has run it since"
    assert components_of(pushing.record("run-2"))[1] == ("Save", "cached", reason)


def test_what_a_run_that_goes_on_has_made_stays_when_another_one_begins(team, on_kubeflow):
    on_kubeflow.plan("run-1")
    name = RunFolder(team.root, "run-1").read_plan().step("Copy").plan.name
    training = team.root.artifacts / "Copy" / name / "unfinished"
    own = training / f"{on_kubeflow.record('run-1').run_id}-0a1b"
    lost = training / "20200101-000000-0a1b"
    for folder in (own, lost):
        folder.mkdir(parents=True)
    on_kubeflow.plan("run-2")
    assert (own.exists(), lost.exists()) == (True, False)
