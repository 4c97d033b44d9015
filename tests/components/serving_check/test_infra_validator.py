import json

import pytest
import tensorflow as tf
from tfx.dsl.components.base import executor_spec
from tfx.proto import pusher_pb2
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
from tfx.utils import proto_utils

from components import InfraValidator, load_serving_check
from components.pusher.executor import Executor as PushExecutor
from components.serving_check import model_process
from components.serving_check.infra_validator import Executor
from components.serving_check.settings import ServingCheckSettings
from components.tfx.model_paths import serving_model_path

MODEL = Channel(type=standard_artifacts.Model)
EXAMPLES = Channel(type=standard_artifacts.Examples)
LOCAL = ServingSpec(local_docker=LocalDockerConfig())
SERVER = TensorFlowServing(tags=["latest"])


def test_its_arguments_become_settings_of_a_serving_check():
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
    assert isinstance(validator.executor_spec, executor_spec.ExecutorClassSpec)
    assert validator.executor_spec.executor_class is Executor


def test_without_a_request_spec_no_examples_are_read_and_a_server_on_kubernetes_is_refused():
    for examples in (EXAMPLES, None):
        validator = InfraValidator(model=MODEL, serving_spec=LOCAL, examples=examples)
        assert [*validator.inputs] == ["model"]
        assert json.loads(validator.exec_properties["settings"])["max_load_seconds"] == 300
    spec = ServingSpec(kubernetes=KubernetesConfig())
    with pytest.raises(ValueError, match=r"Use local_docker=LocalDockerConfig"):
        InfraValidator(model=MODEL, serving_spec=spec)


@pytest.fixture
def model(make_artifact):
    artifact = make_artifact(standard_artifacts.Model)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def double(examples):
        spec = {"x": tf.io.FixedLenFeature([], tf.float32)}
        return {"outputs": 2 * tf.io.parse_example(examples, spec)["x"]}

    tf.saved_model.save(tf.Module(), f"{artifact.uri}/Format-Serving", signatures=double)
    return artifact


@pytest.fixture
def validate(make_artifact):
    def run(model, settings, **inputs):
        blessing = make_artifact(standard_artifacts.InfraBlessing)
        Executor().Do(
            {"model": [model], **{key: [artifact] for key, artifact in inputs.items()}},
            {"blessing": [blessing]},
            {"settings": settings.to_json()},
        )
        return blessing

    return run


@pytest.mark.more
def test_a_pusher_without_a_model_pushes_the_copy_with_warm_up_requests(
    model, validate, make_examples, make_artifact, tmp_path
):
    examples = make_examples([], train=[{"x": 1.5}, {"x": 2.5}])
    examples.split_names = '["train", "eval"]'
    blessing = validate(model, ServingCheckSettings(rows=1), examples=examples)
    assert blessing.get_int_custom_property("blessed") == 1
    assert blessing.get_int_custom_property("has_model") == 1
    filesystem = pusher_pb2.PushDestination.Filesystem(base_directory=str(tmp_path / "serving"))
    destination = proto_utils.proto_to_json(pusher_pb2.PushDestination(filesystem=filesystem))
    outputs = {"pushed_model": [make_artifact(standard_artifacts.PushedModel)]}
    push = PushExecutor(clock=lambda: 1000.0).Do
    push({"infra_blessing": [blessing]}, outputs, {"push_destination": destination})
    version = tmp_path / "serving" / "1000"
    assert (version / "saved_model.pb").is_file()
    assert (version / "assets.extra" / "tf_serving_warmup_requests").stat().st_size


@pytest.mark.more
def test_without_examples_the_model_is_only_loaded(model, validate):
    blessing = validate(model, ServingCheckSettings(max_load_seconds=300))
    assert blessing.get_int_custom_property("blessed") == 1
    result = load_serving_check(blessing.uri)
    assert (result.rows, result.signatures) == (0, {})
    assert result.load_seconds > 0
    assert not blessing.has_custom_property("has_model")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (301, "loading it takes 301 s, but max_load_seconds is 300"),
        (TimeoutError("no answer within 600 s"), "no answer within 600 s"),
        (RuntimeError("ended with code -11"), "ended with code -11"),
    ],
)
def test_a_model_that_loads_slowly_or_crashes_is_not_blessed(model, validate, monkeypatch, answer, reason):
    class Process:
        def ask(self, request, meanwhile):
            if isinstance(answer, Exception):
                raise answer
            return {"load_seconds": answer, "memory_mb": 1, "signatures": {}}, meanwhile()

    def take(path, loads_now):
        assert (path, loads_now) == (serving_model_path(model), True)
        return Process()

    monkeypatch.setattr(model_process, "take", take)
    blessing = validate(model, ServingCheckSettings(max_load_seconds=300))
    assert blessing.get_int_custom_property("blessed") == 0
    assert reason in blessing.get_string_custom_property("blessing_message")
    assert not blessing.has_custom_property("has_model")
