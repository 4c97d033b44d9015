"""Plans of pipelines: names, inputs and refusals before the first step runs."""

import os
import shutil

import pytest
import tensorflow as tf

from pipelines.errors import BadInputError
from pipelines.steps.step_folders import StepFolders


def names(plan):
    return {step.component: step.name for step in plan.steps}


def test_names_do_not_depend_on_the_run_nor_on_what_has_finished(team):
    before = names(team.plan("run-1"))
    team.run("run-1")
    assert names(team.plan("run-2")) == before


def test_beam_options_are_used_but_are_in_no_name(team):
    team.define("""
        from tfx.components.statistics_gen.component import StatisticsGen

        def create_pipeline(workers=1):
            write = Write(text="ab")
            statistics = StatisticsGen(examples=write.outputs["examples"])
            return pipeline(write, statistics, beam_pipeline_args=[f"--direct_num_workers={workers}"])
    """)
    one, two = team.plan(workers=1), team.plan(workers=2)
    assert names(one) == names(two)
    assert "--direct_num_workers=2" in str(two.executors["StatisticsGen"])


RESOLVER = """
    def create_pipeline(text="ab"):
        write = Write(text=text)
        latest = Resolver(strategy_class=LatestArtifactStrategy, {channel}).with_id("latest")
        {upstream}
        return pipeline(write, latest, Copy(examples=latest.outputs["examples"], times=1))
"""


def test_a_resolver_finds_what_earlier_runs_made_newest_first(team):
    team.define(RESOLVER.format(channel="examples=Channel(type=Examples)", upstream=""))
    with pytest.raises(BadInputError, match=r"Copy needs the input 'examples', and latest provides"):
        team.plan()
    folders = StepFolders(team.root.artifacts)
    team.define("def create_pipeline(text): return pipeline(Write(text=text))")
    for text in ("first", "second", "third"):
        team.run(text=text)
    newest = folders.all_finished("Write")[1]  # finished again, later than the others
    shutil.rmtree(newest.folder)
    team.run(text="second")
    team.define(RESOLVER.format(channel="examples=Channel(type=Examples)", upstream=""))
    plan = team.plan(text="fourth")
    (found,) = plan.outputs["latest"]["examples"]
    assert found.step == newest.name
    assert plan.steps[-1].inputs["examples"] == (found,)


@pytest.mark.parametrize(
    ("channel", "upstream"),
    [
        ('examples=write.outputs["examples"]', ""),
        ("examples=Channel(type=Examples)", "latest.add_upstream_node(write)"),
    ],
)
def test_a_resolver_after_a_step_finds_what_this_run_will_make(team, channel, upstream):
    team.define(RESOLVER.format(channel=channel, upstream=upstream))
    team.run("run-1", text="first")
    assert team.text() == "first"
    team.run("run-2", text="second")
    assert team.text() == "second"
    assert team.run("run-3", text="second").ran == {}


def test_outputs_that_are_yet_to_be_made_are_told_apart(team):
    team.define("""
        @component
        def Two(first: OutputArtifact[Model], second: OutputArtifact[Model]):
            pass

        class All(ResolverStrategy):
            def resolve_artifacts(self, store, input_dict):
                return input_dict

        def create_pipeline():
            two = Two()
            every = Resolver(strategy_class=All, model=Channel(type=Model)).with_id("every")
            every.add_upstream_node(two)
            return pipeline(two, every)
    """)
    before = team.plan().outputs["every"]["model"]
    assert [output.key for output in before] == ["first", "second"]
    team.run()
    assert team.plan().outputs["every"]["model"] == before


def test_a_strategy_of_the_users_own_goes_by_its_candidates(team):
    team.define("""
        class Longest(ResolverStrategy):
            def resolve_artifacts(self, store, input_dict):
                found = sorted(input_dict["examples"], key=lambda one: len(text_of(one)))
                return {"examples": found[-2:]}

        def text_of(artifact):
            return artifact.get_string_custom_property("text")

        @component
        def Join(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
            pathlib.Path(model.uri, "text").write_text(text_of(examples))

        def create_pipeline(text):
            found = Resolver(strategy_class=Longest, examples=Channel(type=Examples))
            return pipeline(Write(text=text), found.with_id("found"))
    """)
    for text in ("aaa", "b", "cc"):
        team.run(text=text)
    found = team.plan(text="dddd").outputs["found"]["examples"]
    folders = StepFolders(team.root.artifacts)
    texts = [folders.artifact(one).get_string_custom_property("text") for one in found]
    assert texts == ["cc", "aaa"]


BLESSED = """
    @component
    def Judge(model: InputArtifact[Model], blessing: OutputArtifact[ModelBlessing], good: Parameter[int]):
        blessing.set_int_custom_property("blessed", good)
        blessing.set_int_custom_property("current_model_id", model.id)

    def create_pipeline(text, good=1):
        write = Write(text=text)
        copy = Copy(examples=write.outputs["examples"], times=1)
        latest = Resolver(
            strategy_class=LatestBlessedModelStrategy,
            model=Channel(type=Model),
            model_blessing=Channel(type=ModelBlessing),
        ).with_id("latest")
        return pipeline(write, copy, Judge(model=copy.outputs["model"], good=good), latest)
"""


def test_the_latest_blessed_model_is_that_of_the_newest_blessing_run(team):
    team.define(BLESSED)
    assert team.plan(text="a").outputs["latest"] == {"model": (), "model_blessing": ()}
    for text, good in (("a", 1), ("b", 1), ("c", 0)):
        team.run(text=text, good=good)
    (model,) = team.plan(text="d").outputs["latest"]["model"]
    copy = StepFolders(team.root.artifacts).finished("Copy", model.step)
    assert (copy.folder / "model/text").read_text() == "b"


IMPORT = """
    def create_pipeline(folder):
        outside = Importer(source_uri=folder, artifact_type=Examples, properties={"span": 7})
        outside = outside.with_id("outside")
        return pipeline(outside, Copy(examples=outside.outputs["result"], times=1))
"""


def test_an_import_counts_by_its_content_and_is_read_where_it_lies(team, tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "text").write_text("one")
    team.define(IMPORT)
    first = team.run("run-1", folder=str(folder))
    assert (list(first.ran), team.text()) == (["outside", "Copy"], "one")
    (step,) = StepFolders(team.root.artifacts).all_finished("outside")
    assert (step.artifact("result").uri, step.artifact("result").span) == (str(folder), 7)
    (folder / "text").touch()
    assert team.run("run-2", folder=str(folder)).ran == {}
    (folder / "text").write_text("two")
    changed = team.run("run-3", folder=str(folder))
    assert changed.ran == {"outside": "what it imports changed", "Copy": "outside has a new output"}
    assert team.text() == "two"


def test_an_import_of_nothing_is_refused(team, tmp_path):
    team.define(IMPORT)
    with pytest.raises(BadInputError, match=r"outside: there is nothing to import in .*/missing"):
        team.plan(folder=str(tmp_path / "missing"))


def test_a_union_of_channels_is_an_input_with_all_of_them(team):
    team.define("""
        from tfx.types.channel_utils import union

        @component
        def Count(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
            pass

        def create_pipeline():
            first, second = Write(text="a").with_id("A"), Write(text="b").with_id("B")
            both = union([first.outputs["examples"], second.outputs["examples"]])
            return pipeline(first, second, Count(examples=both))
    """)
    inputs = team.plan().steps[-1].inputs["examples"]
    assert [output.component for output in inputs] == ["A", "B"]


def test_an_import_from_an_object_store_counts_by_size_and_time(team):
    uri = f"ram://{team.file.stem}"
    team.define(IMPORT)
    with pytest.raises(BadInputError, match=r"outside: there is nothing to import in ram://"):
        team.plan(folder=uri)
    for place in (f"{uri}/folder/text", f"{uri}/file"):
        tf.io.gfile.makedirs(os.path.dirname(place))
        found = set()
        for text in ("one", "four"):
            with tf.io.gfile.GFile(place, "w") as file:
                file.write(text)
            for imported in (place, os.path.dirname(place)):
                found.add(team.plan(folder=imported).steps[0].name)
        assert len(found) == 4


PARAMETERS = """
    def create_pipeline():
        text = RuntimeParameter(name="text", ptype=str)
        write = Write(text=text)
        times = RuntimeParameter(name="times", ptype=int, default=2)
        return pipeline(write, Copy(examples=write.outputs["examples"], times=times))
"""


def test_runtime_parameters_have_the_values_of_the_command_line_or_their_defaults(team):
    team.define(PARAMETERS)
    team.run("run-1", parameters={"text": "7"})
    assert team.text() == "77"
    later = team.run("run-2", parameters={"text": "7", "times": "3"})
    assert (later.ran, team.text()) == ({"Copy": "times 2 -> 3"}, "777")


def test_a_default_may_be_empty_or_zero(team):
    team.define("""
        @component
        def Show(
            rate: Parameter[float], count: Parameter[int], text: Parameter[str], model: OutputArtifact[Model]
        ):
            pathlib.Path(model.uri, "text").write_text(f"{rate!r} {count!r} {text!r}")

        def create_pipeline():
            kinds = {"rate": float, "count": int, "text": str}
            defaults = {"rate": 0, "count": 0, "text": ""}
            given = {name: RuntimeParameter(name, kind, defaults[name]) for name, kind in kinds.items()}
            return pipeline(Show(**given))
    """)
    team.run("run-1")
    assert team.text("Show") == "0.0 0 ''"
    team.run("run-2", parameters={"rate": "2", "text": "a"})
    assert team.text("Show") == "2.0 0 'a'"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, r"The RuntimeParameter 'text' has no default value. Give --param text=VALUE"),
        ({"text": "a", "time": "3"}, r"--param time=3: .* no such RuntimeParameter.*: times, text"),
        ({"text": "a", "times": "3.5"}, r"--param times=3.5: the pipeline declares it as INT"),
        ({"text": "a", "pipeline-run-id": "x"}, r"--param pipeline-run-id=x: .* no such"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(team, parameters, message):
    team.define(PARAMETERS)
    with pytest.raises(BadInputError, match=message):
        team.plan(parameters=parameters)


COND = """
    from tfx.dsl.experimental.conditionals.conditional import Cond

    def create_pipeline():
        write = Write(text="ab")
        with Cond(write.outputs["examples"].future()[0].property("span") == 1):
            other = %s
        return pipeline(write, other)
"""
REJECTED = {
    "cond": (
        COND % 'Copy(examples=write.outputs["examples"])',
        r"Copy: a component in a Cond cannot be run as a step: run it with TFX's own LocalDagRunner",
    ),
    "for_each": (
        """
        from tfx.dsl.control_flow.for_each import ForEach

        def create_pipeline():
            write = Write(text="ab")
            with ForEach(write.outputs["examples"]) as examples:
                copy = Copy(examples=examples)
            return pipeline(write, copy)
        """,
        r"Copy: a component in a ForEach, or one with a resolver function cannot be run as a step",
    ),
    "subpipeline": (
        """
        def create_pipeline():
            return pipeline(Pipeline("inner", components=[Write(text="ab")]))
        """,
        r"inner: a pipeline inside the pipeline cannot be run as a step",
    ),
    "container": (
        """
        from tfx.dsl.component.experimental.container_component import create_container_component

        Echo = create_container_component(name="Echo", image="alpine", command=["echo"])

        def create_pipeline():
            return pipeline(Echo())
        """,
        r"Echo: a component that runs in a container cannot be run as a step",
    ),
    "conditional_importer": (
        COND % 'Importer(source_uri="/x", artifact_type=Examples).with_id("outside")',
        r"outside: a component in a Cond cannot be run as a step",
    ),
    "nested_type": (
        """
        class Outer:
            class Inner(Examples):
                TYPE_NAME = "InnerExamples"

        @component
        def Make(examples: OutputArtifact[Outer.Inner]):
            pass

        def create_pipeline():
            return pipeline(Make())
        """,
        r"Make: the output 'examples', whose type .*Outer.Inner is defined inside a class .* top level",
    ),
    "folder": (
        """
        def create_pipeline():
            return pipeline(Write(text="ab").with_id(".."))
        """,
        r"\.\.: a component whose id cannot be a folder name cannot be run as a step: use with_id",
    ),
    "strategy": (
        """
        class Stored(ResolverStrategy):
            def resolve_artifacts(self, store, input_dict):
                return {"examples": store.get_artifacts()}

        def create_pipeline():
            return pipeline(Resolver(strategy_class=Stored, examples=Channel(type=Examples)))
        """,
        r"the strategy Stored, which reads ML Metadata .* use LatestArtifactStrategy",
    ),
    "driver": (
        """
        from tfx.dsl.components.base import base_driver
        from tfx.components.statistics_gen.component import StatisticsGen

        class OwnDriver(base_driver.BaseDriver):
            pass

        class OwnStatistics(StatisticsGen):
            DRIVER_CLASS = OwnDriver

        def create_pipeline():
            write = Write(text="ab")
            return pipeline(write, OwnStatistics(examples=write.outputs["examples"]))
        """,
        r"OwnStatistics: the driver .*OwnDriver, which reads ML Metadata, .* remove its DRIVER_CLASS",
    ),
}


@pytest.mark.parametrize("what", REJECTED)
def test_what_needs_another_orchestrator_is_refused_by_name_before_anything_runs(team, what):
    definition, message = REJECTED[what]
    team.define(definition)
    with pytest.raises(BadInputError, match=message):
        team.plan()
    assert not team.root.path.exists()
