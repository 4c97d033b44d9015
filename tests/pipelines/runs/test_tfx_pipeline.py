"""A run of a TFX pipeline of a team's own, with its record."""

import hashlib
import json
import re
from datetime import datetime, timezone

import pytest

import pipelines
from pipelines.config.load import load_config
from pipelines.config.tfx_pipeline import load_tfx_pipeline_config, pipeline_settings
from pipelines.errors import BadInputError
from pipelines.root.history import read_runs
from pipelines.root.lineage import find_lineage, lineage_lines
from pipelines.root.rollback import rollback
from pipelines.runs.tfx_pipeline import TfxPipelineRequest, recorded_config, run_tfx_pipeline, with_origin
from pipelines.scheduling.run_process import run_command
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import time_tick
from pipelines.terminal.progress import Progress
from tests.pipelines.runs.test_run import NoCapture
from tests.pipelines.steps.conftest import Team
from tests.pipelines.steps.test_push_destination import DEFINITION as PUSHING


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)


@pytest.fixture
def run(team, display):
    """Returns a function that runs the team's pipeline."""

    def run_it(*, arguments=(), parameters=(), settings=(), **request):
        config = load_tfx_pipeline_config(None, str(team.file), dict(arguments), dict(parameters), settings)
        return run_tfx_pipeline(
            TfxPipelineRequest(team.root, config, **request), Progress(display), NoCapture()
        )

    return run_it


def describe_origin(root, record):
    """Returns the text of the report's section about the origin, without the environment."""
    page = (root.runs / f"{record.run_id}.html").read_text()
    section = page.partition('id="origin"')[2].partition("<h3>Environment")[0]
    assert "Code fingerprint" in section
    return re.sub(r"<[^>]+>", " ", section)


def components_of(record):
    return [(one.name, one.status, one.reason) for one in record.components]


def test_a_pipeline_without_a_pusher_finishes_and_is_unchanged_afterwards(run, team, shown):
    first = run()
    assert (first.status, first.name, first.reason) == ("finished", "team", None)
    assert first.graph == {"Write": [], "Copy": ["Write"]}
    assert first.config["pipeline"]["file"] == str(team.file)
    assert "artifacts are kept in" in shown.getvalue()
    second = run()
    assert (second.status, second.reason) == ("unchanged", "no step has changed")
    reason = f"same data, code and settings as run {first.run_id}"
    assert components_of(second) == [("Write", "cached", reason), ("Copy", "cached", reason)]
    assert [record.status for record in read_runs(team.root)] == ["finished", "unchanged"]
    page = (team.root.runs / f"{second.run_id}.html").read_text()
    assert "Copy" in page
    assert "unchanged" in page


@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_push_into_the_root_is_a_version_of_the_root(run, team, tmp_path, monkeypatch, is_absolute):
    team.define(PUSHING)
    monkeypatch.chdir(tmp_path)
    folder = team.root.serving if is_absolute else team.root.serving.relative_to(tmp_path)
    record = run(arguments={"folder": str(folder)})
    assert (record.status, record.serving_version) == ("pushed", record.version)
    assert record.version is not None
    assert team.root.versions.serving() == record.version
    again = run(arguments={"folder": str(folder)})
    assert (again.status, again.version) == ("unchanged", None)
    judged = run(arguments={"folder": str(folder), "bound": "8"})
    assert (judged.status, judged.reason) == ("unchanged", "the model that was pushed has not changed")
    for _ in range(2):
        refused = run(arguments={"folder": str(folder), "bound": "9"})
        assert (refused.status, refused.reason) == ("not_blessed", "Judge has not blessed the model")


def test_the_lineage_of_a_version_has_its_pipeline_and_code(run, team, tmp_path, monkeypatch):
    team.define(PUSHING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(team, "file", team.file.relative_to(tmp_path))
    record = run(arguments={"folder": str(team.root.serving)})
    (lineage,) = find_lineage(team.root)
    file = str(tmp_path / team.file)
    assert (lineage["run_id"], lineage["version"]) == (record.run_id, record.version)
    assert (lineage["data"]["path"], lineage["code"]["module"]) == (None, file)
    assert lineage["parameters"] == {
        "pipeline.file": file,
        "pipeline.arguments.folder": str(team.root.serving),
    }
    text = "\n".join(lineage_lines(lineage))
    digest = hashlib.sha256(team.file.read_bytes()).hexdigest()
    assert f"  code       {team.file.name}, sha256 {digest}\n" in text
    for component in ("Write", "Save", "Judge"):
        assert f"  code       {component}: executor, sha256 " in text
    assert "None" not in text
    assert "  data" not in text
    assert "None" not in describe_origin(team.root, record)


def test_the_lineage_has_the_files_and_spans_that_were_read(team, tmp_path, killed):
    team.define("""
        from components import CsvExampleGen
        from tfx.proto.example_gen_pb2 import Input

        def create_pipeline(folder, pattern):
            splits = [Input.Split(name="all", pattern=pattern)]
            words = Importer(source_uri=folder + "/words.txt", artifact_type=Examples).with_id("Words")
            data = CsvExampleGen(input_base=folder, input_config=Input(splits=splits))
            return pipeline(words, data)
    """)
    (tmp_path / "words.txt").write_text("word")
    for name in ("span-3/v2", "2026-01-31"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.csv").write_text("x,y\n1,2\n")

    def origin(pattern):
        return with_origin(killed, team.plan(folder=str(tmp_path), pattern=pattern), team.root)

    of_span = origin("span-{SPAN}/v{VERSION}/*")
    files = {file["path"]: file for file in of_span.data_files}
    assert files.keys() == {f"{tmp_path}/words.txt", f"{tmp_path}/span-3/v2/a.csv"}
    digest = hashlib.sha256(b"x,y\n1,2\n").hexdigest()
    of_csv = files[f"{tmp_path}/span-3/v2/a.csv"]
    assert (of_csv["bytes"], of_csv["sha256"]) == (8, digest)
    assert of_span.spans == ({"span": 3, "version": 2, "num_files": 1},)
    of_day = origin("{YYYY}-{MM}-{DD}/*")
    assert of_day.spans == ({"span": "2026-01-31", "version": None, "num_files": 1},)
    assert of_day.data_fingerprint != of_span.data_fingerprint
    without = origin("2026-01-31/*")
    assert without.spans == ()


COMPARING = """
    @component
    def Compare(model: InputArtifact[Model], baseline_model: InputArtifact[Model]):
        pass

    def create_comparing(folder, text):
        pushing = create_pipeline(folder, text)
        (save,) = (one for one in pushing.components if one.id == "Save")
        resolver = Resolver(strategy_class=LatestArtifactStrategy, model=Channel(type=Model))
        baseline = resolver.outputs["model"]
        compare = Compare(model=save.outputs["model"], baseline_model=baseline)
        return pipeline(*pushing.components, resolver, compare)
"""


def test_the_baseline_is_the_version_that_a_resolver_chose(run, team, tmp_path):
    team.define(PUSHING + COMPARING)
    folder = str(team.root.serving)
    first = run(arguments={"folder": folder, "text": "a"})
    second = run(arguments={"folder": folder, "text": "b"})
    assert (first.baseline_version, second.baseline_version) == (None, None)
    rollback(team.root)
    assert team.root.versions.serving() == first.version
    team.file = f"{team.file}:create_comparing"
    third = run(arguments={"folder": folder, "text": "c"})
    assert (third.status, third.baseline_version) == ("pushed", second.version)


def test_a_push_elsewhere_is_a_note(run, team, tmp_path):
    team.define(PUSHING)
    record = run(arguments={"folder": str(tmp_path / "served")})
    (version,) = (tmp_path / "served").iterdir()
    assert (record.status, record.version) == ("pushed", None)
    assert record.notes == (f"Pusher: pushed to {version}",)


def test_a_failed_run_is_resumed_under_its_id_and_keeps_what_had_finished(run, team):
    failed = run(arguments={"times": "-1"})
    assert failed.status == "failed"
    assert failed.reason.startswith("Copy: ValueError: times is negative")
    assert [one[:2] for one in components_of(failed)] == [("Write", "finished"), ("Copy", "failed")]
    resumed = run(resume=True)
    assert (resumed.record.run_id, resumed.status) == (failed.record.run_id, "finished")
    assert components_of(resumed)[0][2] == "it was finished when the run stopped"
    with pytest.raises(BadInputError, match=r"there is nothing to resume in .* has ended \(finished\)"):
        run(resume=True)


def test_a_signal_interrupts_the_run_and_finishes_no_step(run, team, handles_signals):
    team.define("""
        import signal

        @component
        def Stop(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
            pathlib.Path(model.uri, "text").write_text("half")
            if not os.path.exists("/nonexistent"):
                signal.raise_signal(signal.SIGTERM)
                import time
                time.sleep(30)

        def create_pipeline():
            write = Write(text="a")
            return pipeline(write, Stop(examples=write.outputs["examples"]))
    """)
    record = run()
    assert (record.status, record.reason) == ("interrupted", "stopped by a signal")
    assert not list(team.root.artifacts.glob("Stop/*/step.json"))


def test_a_definition_that_is_refused_leaves_no_record(run, team):
    with pytest.raises(BadInputError, match="no such RuntimeParameter"):
        run(parameters={"steps": "3"})
    assert not team.root.runs.exists()


def test_a_root_belongs_to_one_pipeline(run, team, killed):
    with pytest.raises(
        BadInputError, match=r"has runs of the pipeline 'data': use another --root for 'team'"
    ):
        run()


def test_a_damaged_configuration_in_a_record_is_named(run, team):
    record = run(arguments={"times": "-1"})
    team.root.records.write(record.changed(config={"pipeline": {"fil": "a.py"}}))
    with pytest.raises(BadInputError, match=rf"record of run {record.run_id} .*pipeline.fil"):
        recorded_config(team.root)


def test_the_configuration_may_be_a_file(team, run, tmp_path, monkeypatch):
    file = tmp_path / "team.toml"
    file.write_text(
        f'[pipeline]\nfile = "{team.file.name}"\narguments = {{ text = "c", times = 4 }}\n'
        "[beam.direct]\nworkers = 2\n"
    )
    monkeypatch.chdir("/")
    config = load_tfx_pipeline_config(file, None, {"times": "2"}, {}, ("beam.direct.workers=3",))
    assert config.pipeline.model_dump() == {
        "file": str(team.file),
        "function": None,
        "arguments": {"text": "c", "times": "2"},
        "parameters": {},
    }
    assert config.beam.direct.workers == 3
    given = load_tfx_pipeline_config(file, "b.py:build", {}, {}, ())
    assert (given.pipeline.file, given.pipeline.function) == ("b.py", "build")


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("[pipeline]\nfil = 'a.py'", (), r"pipeline.fil = 'a.py': there is no such key. Did you mean file\?"),
        ("", (), r"pipeline.file is missing"),
        ("[pipeline]\nfile = 'a.py'\n[data]\npath='x'", (), r"data.*: there is no such key"),
        ("pipeline = 7", (), r"pipeline = 7: "),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path, text, settings, message):
    file = tmp_path / "team.toml"
    file.write_text(text)
    with pytest.raises(BadInputError, match=message):
        load_tfx_pipeline_config(file, None, {}, {}, settings)


def test_commands_that_need_a_csv_refuse_a_tfx_pipeline(run, tmp_path):
    file = tmp_path / "team.toml"
    file.write_text("[pipeline]\nfile = 'a.py'")
    with pytest.raises(BadInputError, match=r"team.toml has \[pipeline\], .* needs a pipeline from a CSV"):
        load_config(file)
    record = run()
    with pytest.raises(BadInputError, match=f"of run {record.run_id} has \\[pipeline\\]"):
        record.validated_config()


def test_the_command_runs_a_pipeline_and_prints_its_outcome(warm_command, team):
    ended = warm_command("run", "--pipeline", str(team.file), "--arg", "times=2", "--root", str(team.root))
    assert ended.returncode == 0, ended.stderr
    line = json.loads(ended.stdout.splitlines()[-1])
    assert (line["status"], line["version"]) == ("finished", None)
    assert team.text() == "abab"


def test_the_command_of_a_schedule_runs_the_pipeline_and_resumes_it(warm_command, team, tmp_path):
    now = datetime.now(timezone.utc)
    schedule = Schedule(
        name="team",
        settings=pipeline_settings(str(team.file), {"times": "-1"}, {}),
        working_dir=str(tmp_path),
        every_secs=60,
        since=now,
        created=now,
    )
    tick = time_tick("team", now)
    _, _, *words = run_command(schedule, tick, team.root, resume=False)[1:]
    failed = json.loads(warm_command(*words).stdout.splitlines()[-1])
    assert (failed["status"], failed["scheduled_by"]) == ("failed", tick.id)
    team.file.write_text(team.file.read_text().replace("times < 0", "times < -1"))
    _, _, *words = run_command(schedule, tick, team.root, resume=True)[1:]
    resumed = json.loads(warm_command(*words).stdout.splitlines()[-1])
    assert (resumed["run_id"], resumed["status"]) == (failed["run_id"], "finished")


def test_resume_needs_no_options_but_the_root(warm_command, team, run):
    failed = run(arguments={"times": "-1"})
    team.file.write_text(team.file.read_text().replace("times < 0", "times < -1"))
    ended = warm_command("run", "--resume", "--root", str(team.root))
    assert ended.returncode == 0, ended.stderr
    line = json.loads(ended.stdout.splitlines()[-1])
    assert (line["run_id"], line["status"], team.text()) == (failed.run_id, "finished", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "a.csv"), "--data and --label are for a pipeline from a CSV"),
        (("--runner", "kubeflow"), "--runner kubeflow runs the compiled pipeline here with --local"),
        (("--runner", "kubeflow", "--local", "--resume"), "--resume does not apply"),
        (("--local",), "--local is for --runner kubeflow only"),
        (("--arg", "times"), "--arg takes name=value. Received: 'times'"),
    ],
)
def test_options_that_do_not_fit_are_refused(warm_command, team, options, message):
    ended = warm_command("run", "--pipeline", str(team.file), *options, "--root", str(team.root))
    assert ended.returncode == 2
    assert message in ended.stderr


def test_a_pipeline_runs_in_python(team, run, capfd):
    first = pipelines.run(team.load(text="ab"), root=str(team.root))
    assert (first.status, first.reason) == ("finished", None)
    assert team.text() == "ababab"
    assert "✓ Copy" in capfd.readouterr().err
    assert pipelines.run(team.load(text="ab"), root=team.root.path).status == "unchanged"
    failed = pipelines.run(team.load(text="ab", times=-1), root=team.root.path)
    assert (failed.status, failed.reason[:16]) == ("failed", "Copy: ValueError")
    with pytest.raises(BadInputError, match=r"was started by pipelines\.run.*--pipeline FILE\.py"):
        recorded_config(team.root)
    resumed = pipelines.run(team.load(text="ab", times=2), root=team.root.path, resume=True)
    assert (resumed.record.run_id, resumed.status) == (failed.record.run_id, "finished")
    # The command line goes on with the same root.
    assert run(arguments={"text": "ab", "times": 2}).status == "unchanged"


def test_parameters_of_a_pipeline_in_python(team):
    team.define("""
        def create_pipeline():
            return pipeline(Write(text=RuntimeParameter(name="text", ptype=str, default="a")))
    """)
    pipelines.run(team.load(), root=team.root.path, parameters={"text": "b"})
    assert team.text("Write", "examples") == "b"
    with pytest.raises(BadInputError, match="no such RuntimeParameter"):
        pipelines.run(team.load(), root=team.root.path, parameters={"txt": "b"})


def test_a_configuration_needs_the_file_of_its_pipeline(tmp_path):
    toml = tmp_path / "team.toml"
    toml.write_text('[pipeline]\nfunction = "create_pipeline"\n')
    with pytest.raises(BadInputError, match=r"team\.toml: pipeline\.file is missing"):
        load_tfx_pipeline_config(toml, None, {}, {}, ())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": {"text": ["a"]}}, r"pipeline\.parameters\.text"),
        ({"beam": {"direct": {"workers": 0}}}, r"beam\.direct\.workers = 0"),
        ({"runner": "beam"}, r"Set beam\.direct\.workers"),
        ({"runner": "flink"}, "Available runners"),
    ],
)
def test_what_python_cannot_run_is_bad_input_and_touches_nothing(team, given, message):
    with pytest.raises(BadInputError, match=message):
        pipelines.run(team.load(), root=team.root.path, **given)
    with pytest.raises(BadInputError, match=r"pipelines\.run gives no TFX pipeline. Received: dict"):
        pipelines.run({}, root=team.root.path)
    assert not team.root.path.exists()


def test_beams_settings_in_python(team):
    workers = {"direct": {"workers": 2}}
    run = pipelines.run(team.load(), root=team.root.path, runner="beam", beam=workers)
    assert run.status == "finished"
    assert run.record.config["beam"]["direct"]["workers"] == 2
