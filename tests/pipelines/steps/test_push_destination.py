"""Pushes: their effects lie outside of their step's folder."""

import pytest

DEFINITION = """
    from tfx.components.pusher.component import Pusher
    from tfx.proto.pusher_pb2 import PushDestination
    from tfx.types import standard_component_specs

    @component
    def Save(examples: InputArtifact[Examples], model: OutputArtifact[Model]):
        folder = pathlib.Path(model.uri, "Format-Serving")
        folder.mkdir()
        (folder / "saved_model.pb").write_bytes(pathlib.Path(examples.uri, "text").read_bytes())

    def create_pipeline(folder, text="ab"):
        write = Write(text=text)
        save = Save(examples=write.outputs["examples"])
        place = PushDestination(filesystem=PushDestination.Filesystem(base_directory=folder))
        return pipeline(write, save, Pusher(model=save.outputs["model"], push_destination=place))
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


def test_a_push_that_is_still_there_is_not_repeated(push, tmp_path):
    ran, texts, _ = push("run-1", tmp_path / "served")
    assert (list(ran), texts) == (["Write", "Save", "Pusher"], ["ab"])
    assert push("run-2", tmp_path / "served")[:2] == ({}, ["ab"])


def test_a_push_whose_destination_is_gone_is_repeated(push, tmp_path):
    _, _, (version,) = push("run-1", tmp_path / "served")
    version.rename(tmp_path / "elsewhere")
    assert push("run-2", tmp_path / "served")[:2] == (
        {"Pusher": "what it pushed is gone"},
        ["ab"],
    )
    assert push("run-3", tmp_path / "served")[:2] == ({}, ["ab"])


def test_a_version_that_a_rollback_withdrew_is_not_pushed_again(push, team):
    _, _, (version,) = push("run-1", team.root.serving)
    team.root.withdrawn.mkdir()
    version.rename(team.root.withdrawn / version.name)
    assert push("run-2", team.root.serving)[:2] == ({}, [])


BLESSED = """
    from tfx.components.pusher.component import Pusher
    from tfx.proto.pusher_pb2 import PushDestination

    @component
    def Save(model: OutputArtifact[Model], text: Parameter[str]):
        folder = pathlib.Path(model.uri, "Format-Serving")
        folder.mkdir()
        (folder / "saved_model.pb").write_text(text)

    @component
    def Judge(
        model: InputArtifact[Model], blessing: OutputArtifact[ModelBlessing], baseline: Parameter[int]
    ):
        blessing.set_int_custom_property("blessed", 1)

    def create_pipeline(folder, text="ab", baseline=1):
        save = Save(text=text)
        judge = Judge(model=save.outputs["model"], baseline=baseline)
        place = PushDestination(filesystem=PushDestination.Filesystem(base_directory=folder))
        pusher = Pusher(
            model=save.outputs["model"],
            model_blessing=judge.outputs["blessing"],
            push_destination=place,
        )
        return pipeline(save, judge, pusher)
"""


def test_a_new_blessing_of_the_same_model_does_not_undo_a_rollback(push, team):
    team.define(BLESSED)
    _, _, (version,) = push("run-1", team.root.serving)
    team.root.withdrawn.mkdir()
    version.rename(team.root.withdrawn / version.name)
    ran, texts, _ = push("run-2", team.root.serving, baseline=2)
    assert (list(ran), texts) == (["Judge"], [])
    ran, texts, _ = push("run-3", team.root.serving, baseline=2, text="cd")
    assert (list(ran), texts) == (["Save", "Judge", "Pusher"], ["cd"])
