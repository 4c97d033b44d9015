import pytest
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import Pusher


def test_it_has_stock_inputs_and_outputs() -> None:
    destination = PushDestination(filesystem=PushDestination.Filesystem(base_directory="serving"))
    pusher = Pusher(
        model=Channel(type=standard_artifacts.Model),
        push_destination=destination,
        custom_config={"keep": 3},
    )
    assert pusher.outputs["pushed_model"].type is standard_artifacts.PushedModel
    assert pusher.exec_properties["custom_config"] == '{"keep": 3}'


def test_a_destination_is_required() -> None:
    with pytest.raises(ValueError, match="base_directory"):
        Pusher(model=Channel(type=standard_artifacts.Model), push_destination=PushDestination())


def test_a_model_is_required() -> None:
    with pytest.raises(ValueError, match="needs a model"):
        Pusher()
