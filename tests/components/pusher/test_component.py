import json

import pytest
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import Pusher
from components.pusher.executor import Executor


def test_it_has_stock_outputs_and_needs_a_destination_and_a_model():
    destination = PushDestination(filesystem=PushDestination.Filesystem(base_directory="serving"))
    pusher = Pusher(
        model=Channel(type=standard_artifacts.Model), push_destination=destination, custom_config={"keep": 3}
    )
    assert pusher.outputs["pushed_model"].type is standard_artifacts.PushedModel
    assert pusher.exec_properties["custom_config"] == '{"keep": 3}'
    with pytest.raises(ValueError, match="base_directory"):
        Pusher(model=Channel(type=standard_artifacts.Model), push_destination=PushDestination())
    with pytest.raises(ValueError, match="needs a model"):
        Pusher()


def test_values_of_the_run_may_stand_in_the_destination():
    folder = RuntimeParameter("serving", str)
    destination = {"filesystem": {"base_directory": folder}}
    pusher = Pusher(model=Channel(type=standard_artifacts.Model), push_destination=destination)
    # TFX 1.21 substitutes a RuntimeParameter only if it is a whole execution property.
    assert pusher.exec_properties["base_directory"] is folder
    destination = json.loads(pusher.exec_properties["push_destination"])
    assert destination == {"filesystem": {"base_directory": ""}}


def test_another_executor_may_do_without_a_destination_and_have_settings_of_its_own():
    elsewhere = type("ElsewhereExecutor", (Executor,), {})
    pusher = Pusher(
        infra_blessing=Channel(type=standard_artifacts.InfraBlessing),
        custom_config={"endpoint": "models"},
        custom_executor_spec=ExecutorClassSpec(elsewhere),
    )
    assert pusher.executor_spec.executor_class is elsewhere
    assert pusher.exec_properties["custom_config"] == '{"endpoint": "models"}'
