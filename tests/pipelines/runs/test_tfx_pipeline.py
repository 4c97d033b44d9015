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
from pipelines.runs.tfx_pipeline import recorded_config, with_origin
from pipelines.scheduling.run_process import run_command
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.steps.test_push_destination import DEFINITION as PUSHING


def describe_origin(root, record):
    """Returns the text of the report's section about the origin, without the environment."""
    page = (root.runs / f"{record.run_id}.html").read_text()
    section = page.partition('id="origin"')[2].partition("<h3>Environment")[0]
    assert "Code fingerprint" in section
    return re.sub(r"<[^>]+>", " ", section)


def components_of(record):
    return [(one.name, one.status, one.reason) for one in record.components]


def test_a_pipeline_without_a_pusher_finishes_and_is_unchanged_afterwards(run_team, team, shown):
    first = run_team()
    assert (first.status, first.name, first.reason) == ("finished", "team", None)
    assert first.graph == {"Write": [], "Copy": ["Write"]}
    assert first.config["pipeline"]["file"] == str(team.file)
    assert "artifacts are kept in" in shown.getvalue()
    second = run_team()
    assert (second.status, second.reason) == ("unchanged", "no step has changed")
    reason = f"same data, code and settings as run {first.run_id}"
    assert components_of(second) == [("Write", "cached", reason), ("Copy", "cached", reason)]
    assert [record.status for record in read_runs(team.root)] == ["finished", "unchanged"]
    page = (team.root.runs / f"{second.run_id}.html").read_text()
    assert "Copy" in page
    assert "unchanged" in page


@pytest.mark.sampled(2)
@pytest.mark.parametrize("folder", ["{root}/serving", "root/serving", "a/link/serving", "a/../root/serving"])
def test_a_push_into_the_root_is_a_version_of_the_root(run_team, team, tmp_path, monkeypatch, folder):
    team.define(PUSHING)
    monkeypatch.chdir(tmp_path)
    folder = folder.format(root=team.root)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to(team.root)
    record = run_team(arguments={"folder": folder})
    assert (record.status, record.serving_version) == ("pushed", record.version)
    assert team.root.versions.serving() == record.version is not None
    (save,) = (team.root.artifacts / "Save").iterdir()
    assert team.root.versions.origin().model_uri == str(save / "model")
    again = run_team(arguments={"folder": folder})
    assert (again.status, again.version) == ("unchanged", None)
    for bound, ended in (
        ("8", ("unchanged", "the model that was pushed has not changed")),
        ("9", ("not_blessed", "Judge has not blessed the model")),
        ("9", ("not_blessed", "Judge has not blessed the model")),
    ):
        judged = run_team(arguments={"folder": folder, "bound": bound})
        assert (judged.status, judged.reason) == ended
    team.root.withdrawn.mkdir()
    (team.root.serving / record.version).rename(team.root.withdrawn / record.version)  # as a rollback does
    assert run_team(arguments={"folder": folder}).status == "unchanged"


def test_the_lineage_of_a_version_has_its_pipeline_and_code(run_team, team, tmp_path, monkeypatch):
    team.define(PUSHING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(team, "file", team.file.relative_to(tmp_path))
    record = run_team(arguments={"folder": str(team.root.serving)})
    (lineage,) = find_lineage(team.root)
    file = str(tmp_path / team.file)
    assert (lineage["run_id"], lineage["version"]) == (record.run_id, record.version)
    assert (lineage["data"]["path"], lineage["code"]["module"]) == (None, file)
    folder = str(team.root.serving)
    assert lineage["parameters"] == {"pipeline.file": file, "pipeline.arguments.folder": folder}
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
    files = {file["path"]: (file["bytes"], file["sha256"]) for file in of_span.data_files}
    assert files.keys() == {f"{tmp_path}/words.txt", f"{tmp_path}/span-3/v2/a.csv"}
    assert files[f"{tmp_path}/span-3/v2/a.csv"] == (8, hashlib.sha256(b"x,y\n1,2\n").hexdigest())
    assert of_span.spans == ({"span": 3, "version": 2, "num_files": 1},)
    assert origin("span-{SPAN:1}/v{VERSION:1}/*").spans == of_span.spans
    of_day = origin("{YYYY}-{MM}-{DD}/*")
    assert of_day.spans == ({"span": "2026-01-31", "version": None, "num_files": 1},)
    assert of_day.data_fingerprint != of_span.data_fingerprint
    assert origin("2026-01-31/*").spans == ()


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


def test_the_baseline_is_the_version_that_a_resolver_chose(run_team, team, tmp_path):
    team.define(PUSHING + COMPARING)
    folder = str(team.root.serving)
    first = run_team(arguments={"folder": folder, "text": "a"})
    second = run_team(arguments={"folder": folder, "text": "b"})
    assert (first.baseline_version, second.baseline_version) == (None, None)
    rollback(team.root)
    assert team.root.versions.serving() == first.version
    team.file = f"{team.file}:create_comparing"
    third = run_team(arguments={"folder": folder, "text": "c"})
    assert (third.status, third.baseline_version) == ("pushed", second.version)


def test_a_push_elsewhere_is_a_note(run_team, team, tmp_path):
    team.define(PUSHING)
    record = run_team(arguments={"folder": str(tmp_path / "served")})
    (version,) = (tmp_path / "served").iterdir()
    assert (record.status, record.version) == ("pushed", None)
    assert record.notes == (f"Pusher: pushed to {version}",)


def test_a_failed_run_is_resumed_under_its_id_and_keeps_what_had_finished(run_team, team):
    failed = run_team(arguments={"times": "-1"})
    assert failed.status == "failed"
    assert failed.reason.startswith("Copy: ValueError: times is negative")
    assert [one[:2] for one in components_of(failed)] == [("Write", "finished"), ("Copy", "failed")]
    resumed = run_team(resume=True)
    assert (resumed.run_id, resumed.status) == (failed.run_id, "finished")
    assert components_of(resumed)[0][2] == "it was finished when the run stopped"
    with pytest.raises(BadInputError, match=r"there is nothing to resume in .* has ended \(finished\)"):
        run_team(resume=True)


def test_a_signal_interrupts_the_run_and_finishes_no_step(run_team, team, handles_signals):
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
    record = run_team()
    assert (record.status, record.reason) == ("interrupted", "stopped by a signal")
    assert not list(team.root.artifacts.glob("Stop/*/step.json"))


def test_a_definition_that_is_refused_leaves_no_record(run_team, team):
    with pytest.raises(BadInputError, match="no such RuntimeParameter"):
        run_team(parameters={"steps": "3"})
    assert not team.root.runs.exists()


def test_a_root_belongs_to_one_pipeline(run_team, team, killed):
    with pytest.raises(
        BadInputError, match=r"has runs of the pipeline 'data': use another --root for 'team'"
    ):
        run_team()


def test_a_damaged_configuration_in_a_record_is_named(run_team, team):
    record = run_team(arguments={"times": "-1"})
    team.root.records.write(record.changed(config={"pipeline": {"fil": "a.py"}}))
    with pytest.raises(BadInputError, match=rf"record of run {record.run_id} .*pipeline.fil"):
        recorded_config(team.root)


def test_the_configuration_may_be_a_file(team, run_team, tmp_path, monkeypatch):
    file = tmp_path / "team.toml"
    file.write_text(
        f'[pipeline]\nfile = "{team.file.name}"\narguments = {{ text = "c", times = 4 }}\n'
        "[beam.direct]\nworkers = 2\n"
    )
    monkeypatch.chdir("/")
    config = load_tfx_pipeline_config(file, None, {"times": "2"}, {}, ("beam.direct.workers=3",))
    given = {"arguments": {"text": "c", "times": "2"}, "parameters": {}}
    assert config.pipeline.model_dump() == {"file": str(team.file), "function": None, **given}
    assert config.beam.direct.workers == 3
    given = load_tfx_pipeline_config(file, "b.py:build", {}, {}, ())
    assert (given.pipeline.file, given.pipeline.function) == ("b.py", "build")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pipeline]\nfil = 'a.py'", r"pipeline.fil = 'a.py': there is no such key. Did you mean file\?"),
        ("", r"pipeline.file is missing"),
        ('[pipeline]\nfunction = "create_pipeline"\n', r"team\.toml: pipeline\.file is missing"),
        ("[pipeline]\nfile = 'a.py'\n[data]\npath='x'", r"data.*: there is no such key"),
        ("pipeline = 7", r"pipeline = 7: "),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path, text, message):
    file = tmp_path / "team.toml"
    file.write_text(text)
    with pytest.raises(BadInputError, match=message):
        load_tfx_pipeline_config(file, None, {}, {}, ())


def test_commands_that_need_a_csv_refuse_a_tfx_pipeline(run_team, tmp_path):
    file = tmp_path / "team.toml"
    file.write_text("[pipeline]\nfile = 'a.py'")
    with pytest.raises(BadInputError, match=r"team.toml has \[pipeline\], .* needs a pipeline from a CSV"):
        load_config(file)
    record = run_team()
    with pytest.raises(BadInputError, match=f"of run {record.run_id} has \\[pipeline\\]"):
        record.validated_config()


def outcome_of(ended):
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_the_command_runs_a_pipeline_and_prints_its_outcome(warm_command, team):
    words = ("run", "--pipeline", str(team.file), "--arg", "times=2", "--root", str(team.root))
    for options, status in (((), "finished"), ((), "unchanged"), (("--no-cache",), "finished")):
        line = outcome_of(warm_command(*words, *options))
        assert (line["status"], line["version"], team.text()) == (status, None, "abab")


def test_resume_needs_no_options_but_the_root(warm_command, team, run_team):
    failed = run_team(arguments={"times": "-1"})
    team.file.write_text(team.file.read_text().replace("times < 0", "times < -1"))
    line = outcome_of(warm_command("run", "--resume", "--root", str(team.root)))
    assert (line["run_id"], line["status"], team.text()) == (failed.run_id, "finished", "")


def test_the_command_of_a_schedule_runs_the_pipeline_and_resumes_it(warm_command, team, tmp_path):
    now = datetime.now(timezone.utc)
    settings = pipeline_settings(str(team.file), {"times": "-1"}, {})
    times = {"every_secs": 60, "since": now, "created": now}
    schedule = Schedule(name="team", settings=settings, working_dir=str(tmp_path), **times)
    tick = time_tick("team", now)
    _, _, *words = run_command(schedule, tick, team.root, resume=False)[1:]
    failed = json.loads(warm_command(*words).stdout.splitlines()[-1])
    assert (failed["status"], failed["scheduled_by"]) == ("failed", tick.id)
    team.file.write_text(team.file.read_text().replace("times < 0", "times < -1"))
    _, _, *words = run_command(schedule, tick, team.root, resume=True)[1:]
    resumed = json.loads(warm_command(*words).stdout.splitlines()[-1])
    assert (resumed["run_id"], resumed["status"]) == (failed["run_id"], "finished")


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


@pytest.fixture
def in_python(team):
    """Returns a function that runs the team's pipeline with `pipelines.run`."""

    def run(arguments=(), **options):
        return pipelines.run(team.load(**dict(arguments)), root=team.root.path, **options)

    return run


def test_a_pipeline_runs_in_python(team, in_python, run_team, capfd, tmp_path):
    (tmp_path / "link").symlink_to(team.root)
    first = pipelines.run(team.load(text="ab"), root=str(tmp_path / "link"))
    assert (first.status, first.reason, first.root) == ("finished", None, team.root)
    assert team.text() == "ababab"
    assert "✓ Copy" in capfd.readouterr().err
    assert in_python({"text": "ab"}).status == "unchanged"
    failed = in_python({"text": "ab", "times": -1})
    assert (failed.status, failed.reason[:16]) == ("failed", "Copy: ValueError")
    with pytest.raises(BadInputError, match=r"was started by pipelines\.run.*--pipeline FILE\.py"):
        recorded_config(team.root)
    resumed = in_python({"text": "ab", "times": 2}, resume=True)
    assert (resumed.record.run_id, resumed.status) == (failed.record.run_id, "finished")
    # The command line goes on with the same root.
    assert run_team(arguments={"text": "ab", "times": 2}).status == "unchanged"


def test_parameters_of_a_pipeline_in_python(team, in_python):
    team.define("""
        def create_pipeline():
            return pipeline(Write(text=RuntimeParameter(name="text", ptype=str, default="a")))
    """)
    in_python(parameters={"text": "b"})
    assert team.text("Write", "examples") == "b"
    with pytest.raises(BadInputError, match="no such RuntimeParameter"):
        in_python(parameters={"txt": "b"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": {"text": ["a"]}}, r"pipeline\.parameters\.text"),
        ({"beam": {"direct": {"workers": 0}}}, r"beam\.direct\.workers = 0"),
        ({"runner": "beam"}, r"Set beam\.direct\.workers"),
        ({"runner": "flink"}, "Available runners"),
    ],
)
def test_what_python_cannot_run_is_bad_input_and_touches_nothing(team, in_python, given, message):
    with pytest.raises(BadInputError, match=message):
        in_python(**given)
    with pytest.raises(BadInputError, match=r"pipelines\.run gives no TFX pipeline. Received: dict"):
        pipelines.run({}, root=team.root.path)
    assert not team.root.path.exists()


def test_beams_settings_in_python(in_python):
    run = in_python(runner="beam", beam={"direct": {"workers": 2}})
    assert run.status == "finished"
    assert run.record.config["beam"]["direct"]["workers"] == 2
