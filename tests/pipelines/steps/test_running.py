"""Steps of small pipelines, run for real by TFX's operators."""

import json
import os
import shutil

import pytest

from pipelines.errors import RunFailedError
from pipelines.root import Root
from pipelines.steps.step_folders import StepFolders


def test_steps_that_have_not_changed_are_reused_with_the_properties_of_their_outputs(team):
    first = team.run("run-1")
    second = team.run("run-2")
    assert list(first.ran) == ["Write", "Copy"]
    assert first.ran["Copy"] == "no earlier run has finished it"
    assert team.text() == "ababab"
    reason = "same data, code and settings as run run-1"
    assert (second.ran, second.reused) == ({}, {"Write": reason, "Copy": reason})
    (step,) = StepFolders(team.root.artifacts).all_finished("Write")
    assert step.artifact("examples").get_string_custom_property("text") == "ab"
    assert step.artifact("examples").type_name == "Examples"
    for record in team.root.artifacts.glob("*/*/step.json"):  # a newer version may have further fields
        record.write_text(json.dumps({**json.loads(record.read_text()), "new": 7}))
    assert team.run("run-3").ran == {}


def test_a_changed_setting_runs_its_step_and_those_that_depend_on_it(team):
    team.run("run-1")
    later = team.run("run-2", times=2)
    assert (later.ran, list(later.reused)) == ({"Copy": "times 3 -> 2"}, ["Write"])
    upstream = team.run("run-3", text="c", times=2)
    assert upstream.ran == {"Write": "text ab -> c", "Copy": "Write has a new output"}
    assert team.text() == "cc"
    assert team.run("run-4").ran == {}  # the outputs of earlier settings are found
    assert team.run("run-5", text="a" * 61, times=2).ran["Write"] == "text changed"  # it is too long to show


def test_a_step_that_fails_leaves_nothing_that_counts_as_finished(team):
    with pytest.raises(RunFailedError, match="times is negative") as raised:
        team.run("run-1", times=-1)
    assert raised.value.component == "Copy"
    folders = StepFolders(team.root.artifacts)
    assert [step.component for step in folders.all_finished()] == ["Write"]
    again = team.run("run-2", times=1)
    assert (list(again.ran), list(again.reused)) == (["Copy"], ["Write"])


def test_what_a_killed_run_left_of_an_output_is_gone_and_the_rest_stays_for_the_step(team):
    write = team.plan().steps[0]
    unfinished = StepFolders(team.root.artifacts).place(write)
    for name in ("examples", "unfinished", ".scratch"):
        (unfinished / name).mkdir(parents=True)
        (unfinished / name / "half").write_text("")
    gone = f"{os.uname().nodename}-{2**22 + 1}"  # no process has this id
    (unfinished / "examples" / "half").unlink()
    (unfinished / "examples").rmdir()
    (unfinished / "examples").write_text("a file")
    (unfinished / f".step.json-1.{gone}.partial").write_text("{")
    team.run()
    (step,) = StepFolders(team.root.artifacts).all_finished("Write")
    assert sorted(path.name for path in (step.folder / "examples").iterdir()) == ["text"]
    assert sorted(path.name for path in step.folder.iterdir()) == ["examples", "step.json", "unfinished"]


@pytest.mark.parametrize("how", ["definition", "run"])
def test_without_the_cache_each_run_runs_each_step_and_a_resumed_one_does_not(team, how):
    settings = {"use_cache": False}
    if how == "definition":
        team.define("""
            def create_pipeline():
                write = Write(text="ab")
                return pipeline(write, Copy(examples=write.outputs["examples"]), enable_cache=False)
        """)
        settings = {}
    team.run("run-1", **settings)
    second = team.run("run-2", **settings)
    assert second.ran == dict.fromkeys(("Write", "Copy"), "it uses no cache") | {
        "Copy": "it uses no cache; Write has a new output"
    }
    resumed = team.run("run-2", **settings)
    assert set(resumed.reused.values()) == {"it was finished when the run stopped"}
    assert resumed.ran == {}


def test_a_moved_root_stays_valid(team, tmp_path):
    team.run()
    team.root.path.rename(tmp_path / "moved")
    team.root = Root(tmp_path / "moved")
    assert team.run("run-2").ran == {}
    assert list(team.run("run-3", times=1).ran) == ["Copy"]
    assert team.text() == "ab"
    shutil.rmtree(team.root.artifacts / "Copy")
    assert team.run("run-4").ran == {"Copy": "no earlier run has finished it"}


@pytest.mark.parametrize("name", ["root", "a root with ü"])
def test_settings_below_the_root_move_with_it_and_those_beside_it_stay(team, tmp_path, name):
    team.define("""
        @component
        def Show(model: OutputArtifact[Model], places: Parameter[str]):
            pathlib.Path(model.uri, "text").write_text(places)

        def create_pipeline(places):
            return pipeline(Show(places=places))
    """)
    team.root = Root(tmp_path / name)
    places = json.dumps([f"{team.root}/serving", f"{team.root}2/data"])
    team.run(places=places)
    assert json.loads(team.text("Show")) == [f"{team.root}/serving", f"{team.root}2/data"]
    team.root.path.rename(tmp_path / "moved")
    beside = f"{team.root}2/data"
    team.root = Root(tmp_path / "moved")
    assert team.run("run-2", places=json.dumps([f"{team.root}/serving", beside])).ran == {}


def test_a_step_with_a_removed_output_runs_beside_what_is_left_of_it(team):
    team.define("""
        @component
        def Pair(one: OutputArtifact[Model], two: OutputArtifact[Model]):
            for model in (one, two):
                pathlib.Path(model.uri, "text").write_text("whole")

        def create_pipeline():
            return pipeline(Pair())
    """)
    team.run()
    folders = StepFolders(team.root.artifacts)
    for number in (1, 2):
        *_, newest = folders.all_finished("Pair")
        shutil.rmtree(newest.folder / "two")
        later = team.run(f"run-{number + 1}")
        assert later.ran == {"Pair": "an output of it was removed"}
        # A served version may be compared with the output that is left.
        assert (newest.folder / "one" / "text").read_text() == "whole"
        assert [step.is_whole for step in folders.all_finished("Pair")] == [False] * number + [True]
        assert team.run(f"run-{number + 1}b").ran == {}


def test_a_value_of_an_earlier_step_becomes_a_setting(team):
    team.define("""
        @component
        def Count(examples: InputArtifact[Examples]) -> OutputDict(count=int):
            return {"count": len(os.listdir(examples.uri)) + 3}

        def create_pipeline():
            write = Write(text="a")
            count = Count(examples=write.outputs["examples"])
            times = count.outputs["count"].future()[0].value
            return pipeline(write, count, Copy(examples=write.outputs["examples"], times=times))
    """)
    team.run()
    assert team.text() == "aaaa"
    assert team.run("run-2").ran == {}


def test_code_of_the_module_beside_the_definition_does_not_count(team, tmp_path):
    team.run()
    (tmp_path / "unrelated.py").write_text("value = 1")
    assert team.run("run-2").ran == {}
    source = team.file.read_text()
    team.file.write_text(source.replace('text="ab"', 'text="ab", unused=7'))
    assert team.run("run-2b").ran == {}  # the function that returns the pipeline is no code of a step
    team.file.write_text(source.replace("text * times", "text.upper() * times"))
    changed = team.run("run-3")
    assert changed.ran["Copy"].startswith("its own code changed")
    assert team.text() == "ABABAB"


OF_NO_STEP = {"plan": {}, "outputs": {}, "number": 7, "run_id": "run", "elapsed_secs": 1.5}


@pytest.mark.parametrize("content", ["", '{"plan": {', "{}", "[]", json.dumps(OF_NO_STEP), None])
def test_a_step_whose_record_is_damaged_runs_again(team, caplog, content):
    team.run()
    (step,) = StepFolders(team.root.artifacts).all_finished("Copy")
    record = step.folder / "step.json"
    record.unlink() if content is None else record.write_text(content)
    later = team.run("run-2")
    assert (list(later.ran), list(later.reused)) == (["Copy"], ["Write"])
    assert (f"{record} cannot be read" in caplog.text) == (content is not None)
    assert team.run("run-3").ran == {}


def test_outputs_may_hold_absolute_paths_of_themselves_and_lie_in_a_folder_below(team):
    team.define("""
        @component
        def Refer(examples: OutputArtifact[Examples]):
            below = pathlib.Path(examples.uri, "below")
            below.mkdir()
            (below / "text").write_text("ab")
            (below / "path").write_text(str(below / "text"))
            examples.uri = str(below)

        @component
        def Follow(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
            path = pathlib.Path(examples.uri, "path").read_text()
            pathlib.Path(model.uri, "text").write_text(pathlib.Path(path).read_text())

        def create_pipeline():
            refer = Refer()
            return pipeline(refer, Follow(examples=refer.outputs["examples"]))
    """)
    team.run()
    assert team.text("Follow") == "ab"
    assert team.run("run-2").ran == {}


def test_code_in_a_package_beside_the_definition_counts(team, tmp_path):
    package = tmp_path / f"helpers_{team.file.stem}"
    (package / "inner").mkdir(parents=True)
    code = package / "inner" / "texts.py"
    code.write_text("MARK = '1'")
    team.define(f"""
        @component
        def Mark(examples: OutputArtifact[Examples]):
            from {package.name}.inner import texts
            pathlib.Path(examples.uri, "text").write_text(texts.MARK)

        def create_pipeline():
            return pipeline(Mark())
    """)
    team.run()
    assert team.run("run-2").ran == {}
    code.write_text("MARK = '2'")
    assert team.run("run-3").ran == {"Mark": "its own code changed"}


def test_code_that_a_setting_names_by_its_path_counts(team, tmp_path):
    module = tmp_path / f"model_{team.file.stem}.py"
    module.write_text("def run_fn(): return 1")
    team.define("""
        @component
        def Train(model: OutputArtifact[Model], run_fn: Parameter[str]):
            pass

        def create_pipeline(path):
            return pipeline(Train(run_fn=path))
    """)
    team.run(path=f"{module.stem}.run_fn")
    module.write_text("def run_fn(): return 2")
    later = team.run("run-2", path=f"{module.stem}.run_fn")
    assert later.ran == {"Train": "the code of its module changed"}


@pytest.mark.more
def test_workers_of_beam_in_other_processes_find_the_code_of_the_definition(team):
    team.define("""
        import apache_beam as beam
        from tfx.dsl.component.experimental.annotations import BeamComponentParameter

        def shout(text):
            return text.upper()

        @component(use_beam=True)
        def Shout(
            examples: OutputArtifact[Examples],
            beam_pipeline: BeamComponentParameter[beam.Pipeline] = None,
        ):
            with beam_pipeline as begin:
                place = os.path.join(examples.uri, "text")
                texts = begin | beam.Create(["ab"]) | beam.Map(shout)
                texts | beam.io.WriteToText(place, shard_name_template="", append_trailing_newlines=False)

        def create_pipeline():
            processes = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
            return pipeline(Shout(), beam_pipeline_args=processes)
    """)
    team.run()
    assert team.text("Shout", "examples") == "AB"
