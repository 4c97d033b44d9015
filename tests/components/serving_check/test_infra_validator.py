import json
from typing import Any

import pytest
from tfx.proto.infra_validator_pb2 import (
    KubernetesConfig,
    LocalDockerConfig,
    RequestSpec,
    ServingSpec,
    TensorFlowServing,
    ValidationSpec,
)
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import InfraValidator

MODEL = Channel(type=standard_artifacts.Model)
EXAMPLES = Channel(type=standard_artifacts.Examples)
SERVER = TensorFlowServing(tags=["latest"])


def test_its_arguments_become_settings_of_a_serving_check() -> None:
    validator = InfraValidator(
        model=MODEL,
        serving_spec=ServingSpec(tensorflow_serving=SERVER, local_docker=LocalDockerConfig()),
        examples=EXAMPLES,
        request_spec=RequestSpec(split_name="test", num_examples=5),
        validation_spec=ValidationSpec(max_loading_time_seconds=30),
    )
    assert validator.id == "InfraValidator"
    assert validator.outputs["blessing"].type is standard_artifacts.InfraBlessing
    assert json.loads(validator.exec_properties["example_splits"]) == ["test"]
    settings = json.loads(validator.exec_properties["settings"])
    assert (settings["rows"], settings["max_load_seconds"], settings["warmup"]) == (5, 30, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"serving_spec": ServingSpec(kubernetes=KubernetesConfig()), "examples": EXAMPLES},
            "Use local_docker=LocalDockerConfig",
        ),
        ({"serving_spec": ServingSpec(local_docker=LocalDockerConfig())}, "pass examples="),
    ],
)
def test_what_it_cannot_do_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InfraValidator(model=MODEL, **arguments)
