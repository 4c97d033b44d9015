"""Pushes: their effects lie outside of their step's folder."""

import re

import pytest
import tensorflow as tf

from pipelines.root import Root

DEFINITION = """
    from components.pusher.component import Pusher
    from tfx.proto.pusher_pb2 import PushDestination
    from tfx.types import standard_component_specs

    @component
    def Save(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
        folder = pathlib.Path(model.uri, "Format-Serving")
        folder.mkdir()
        (folder / "saved_model.pb").write_bytes(pathlib.Path(examples.uri, "text").read_bytes())

    @component
    def Judge(
        model: InputArtifact[Model], blessing: OutputArtifact[ModelBlessing], bound: Parameter[int] = 0
    ):
        pathlib.Path(blessing.uri, "BLESSED" if bound < 9 else "NOT_BLESSED").write_text("")
        blessing.set_int_custom_property("blessed", int(bound < 9))

    def create_pipeline(folder, text="ab", bound=0):
        write = Write(text=text)
        save = Save(examples=write.outputs["examples"])
        judge = Judge(model=save.outputs["model"], bound=bound)
        place = PushDestination(filesystem=PushDestination.Filesystem(base_directory=folder))
        pusher = Pusher(
            model=save.outputs["model"],
            model_blessing=judge.outputs["blessing"],
            push_destination=place,
        )
        return pipeline(write, save, judge, pusher)
"""


@pytest.fixture
def push(team):
    """Returns a function that runs a pipeline which pushes, and returns what ran and what is served."""
    team.define(DEFINITION)

    def push_it(run_id, folder, **arguments):
        ran = team.run(run_id, folder=str(folder), **arguments).ran
        served = sorted(path for path in folder.iterdir()) if folder.exists() else []
        return ran, [(one / "saved_model.pb").read_text() for one in served], served

    return push_it


def test_a_push_is_repeated_only_if_its_destination_is_gone(push, tmp_path):
    ran, texts, (version,) = push("run-1", tmp_path / "served")
    assert (list(ran), texts) == (["Write", "Save", "Judge", "Pusher"], ["ab"])
    assert push("run-2", tmp_path / "served")[:2] == ({}, ["ab"])
    version.rename(tmp_path / "elsewhere")
    assert push("run-3", tmp_path / "served")[:2] == ({"Pusher": "what it pushed no longer exists"}, ["ab"])
    assert push("run-4", tmp_path / "served")[:2] == ({}, ["ab"])


def test_a_version_that_a_rollback_withdrew_is_not_pushed_again(push, team):
    _, _, (version,) = push("run-1", team.root.serving)
    team.root.withdrawn.mkdir()
    version.rename(team.root.withdrawn / version.name)
    assert push("run-2", team.root.serving)[:2] == ({}, [])
    ran, texts, _ = push("run-3", team.root.serving, bound="2")  # a new blessing of the same model
    assert (list(ran), texts) == (["Judge"], [])
    assert push("run-4", team.root.serving, bound="2", text="cd")[1] == ["cd"]


def test_a_model_that_is_only_judged_again_is_not_pushed_again(push, tmp_path):
    push("run-1", tmp_path / "served")
    ran, texts, _ = push("run-2", tmp_path / "served", bound="8")
    assert (list(ran), texts) == (["Judge"], ["ab"])
    assert list(push("run-3", tmp_path / "served", bound="9")[0]) == ["Judge"]


def test_a_model_that_was_refused_is_pushed_once_it_is_blessed(push, tmp_path):
    assert push("run-1", tmp_path / "served", bound="9")[1] == []
    ran, texts, _ = push("run-2", tmp_path / "served")
    assert (list(ran), texts) == (["Judge", "Pusher"], ["ab"])


def test_a_former_model_is_pushed_again_if_another_one_serves(push, tmp_path):
    push("run-1", tmp_path / "served", text="a")
    push("run-2", tmp_path / "served", text="b")
    ran, texts, _ = push("run-3", tmp_path / "served", text="a")
    assert (list(ran), texts) == (["Pusher"], ["a", "b", "a"])
    assert push("run-4", tmp_path / "served", text="a")[0] == {}


def test_a_root_that_is_moved_with_its_versions_pushes_nothing(push, team, tmp_path):
    push("run-1", team.root.serving)
    team.root.path.rename(tmp_path / "moved")
    team.root = Root(tmp_path / "moved")
    assert push("run-2", team.root.serving)[0] == {}


def test_a_push_to_an_object_store_is_looked_up_there(push, team, tmp_path):
    bucket = f"ram://{team.file.stem}/served"
    assert "Pusher" in team.run("run-1", folder=bucket).ran
    assert team.run("run-2", folder=bucket).ran == {}
    tf.io.gfile.rmtree(bucket)
    assert team.run("run-3", folder=bucket).ran == {"Pusher": "what it pushed no longer exists"}


def test_a_runtime_parameter_may_name_the_folder_of_versions_by_a_link(team, tmp_path):
    place = '{"filesystem": {"base_directory": RuntimeParameter(name="folder", ptype=str)}}'
    team.define(re.sub(r"PushDestination\(filesystem=.*\)", place, DEFINITION))
    (tmp_path / "link").symlink_to(team.root)

    def name(folder):
        plan = team.plan(folder="", parameters={"folder": str(folder)})
        return plan.step("Pusher").name

    assert name(tmp_path / "link" / "serving") == name(team.root.serving) != name(tmp_path / "served")
