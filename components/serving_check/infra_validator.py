"""A ServingCheck with the arguments of TFX's InfraValidator."""

from tfx.proto.infra_validator_pb2 import RequestSpec, ServingSpec, ValidationSpec
from tfx.types.channel import BaseChannel

from components.serving_check.component import ServingCheck
from components.serving_check.settings import ServingCheckSettings


class InfraValidator(ServingCheck):
    """Blesses a model that loads and answers in a clean process, in place of TFX's InfraValidator.

    TFX's starts TensorFlow Serving in Docker and checks that it answers at all. This one needs no Docker, and
    also compares the answers with those that the Evaluator judges, see `ServingCheck`. The image and its
    tags in the serving_spec have no meaning here, nor has the number of tries.

    Args:
        model: Channel of the `Model`, from a Trainer.
        serving_spec: Platform of the server, which must be `local_docker`.
        examples: Channel of raw `Examples`, from an ExampleGen.
        request_spec: Split and number of the examples to send, and if warm-up requests are written. Default:
            one example of `eval`.
        validation_spec: Limit of the time that loading takes. Default: none.

    Raises:
        ValueError: The server is to run on Kubernetes, or there are no examples.

    Example:
        infra_validator = InfraValidator(
            model=trainer.outputs["model"],
            examples=example_gen.outputs["examples"],
            serving_spec=ServingSpec(
                tensorflow_serving=TensorFlowServing(tags=["latest"]), local_docker=LocalDockerConfig()
            ),
        )
    """

    def __init__(
        self,
        model: BaseChannel,
        serving_spec: ServingSpec,
        examples: BaseChannel | None = None,
        request_spec: RequestSpec | None = None,
        validation_spec: ValidationSpec | None = None,
    ) -> None:
        platform = serving_spec.WhichOneof("serving_platform")
        if platform == "kubernetes":
            raise ValueError(
                "InfraValidator can't start a server on Kubernetes. Use local_docker=LocalDockerConfig(), or "
                "a ServingCheck: both ask the model in a process beside the component. "
                f"Received: serving_spec={serving_spec}"
            )
        if examples is None:
            raise ValueError(
                "InfraValidator compares the model's answers, so it needs rows to ask: pass examples=, such "
                "as example_gen.outputs['examples']."
            )
        request = request_spec or RequestSpec()
        validation = validation_spec or ValidationSpec()
        super().__init__(
            model=model,
            examples=examples,
            example_splits=[request.split_name] if request.split_name else None,
            settings=ServingCheckSettings(
                rows=request.num_examples or 1,
                max_load_seconds=validation.max_loading_time_seconds or None,
                warmup=request.make_warmup,
            ),
        )
