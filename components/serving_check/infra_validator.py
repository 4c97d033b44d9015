"""TFX's InfraValidator on the process of the ServingCheck."""

import json
import os
from typing import Any

from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.proto.infra_validator_pb2 import RequestSpec, ServingSpec, ValidationSpec
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.artifact import Artifact
from tfx.types.channel import BaseChannel, Channel
from tfx.utils import io_utils, path_utils

from components.pusher.versions import WARMUP_FILE
from components.serving_check.component import ServingCheckSpec
from components.serving_check.executor import ServingCheckResult, check, write_result, write_warmup
from components.serving_check.rows import Rows, read_rows
from components.serving_check.settings import ServingCheckSettings
from components.tfx.model_paths import serving_model_path

_MAX_LOAD_SECONDS = 300  # as in TFX


class Executor(base_executor.BaseExecutor):
    """Judges as TFX's InfraValidator does: if anything goes wrong with the model, the run continues."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        settings = ServingCheckSettings.from_json(exec_properties["settings"])
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        rows = Rows([], [], {})
        if examples := input_dict.get("examples"):
            splits = json.loads(exec_properties.get("example_splits") or "null")
            first_split = artifact_utils.decode_split_names(examples[0].split_names)[:1]
            rows = read_rows(examples, splits or first_split, settings.rows, label=None)
        try:
            result, requests = check(model, rows, settings)
        except RuntimeError as error:  # above the limit, or the process has crashed
            result, requests = ServingCheckResult(failures=[str(error)]), {}
        if settings.warmup and requests and not result.failures:
            write_warmup(os.path.join(blessing.uri, WARMUP_FILE), requests)
            # A Pusher that is given no model pushes this copy.
            stamped = path_utils.stamped_model_path(blessing.uri)
            io_utils.copy_dir(serving_model_path(model), stamped)
            write_warmup(os.path.join(stamped, WARMUP_FILE), requests)
            blessing.set_int_custom_property("has_model", 1)
        write_result(blessing, result)


class InfraValidator(base_component.BaseComponent):
    """Blesses a model that loads and answers in a clean process, in place of TFX's InfraValidator.

    TFX's starts TensorFlow Serving in Docker and checks that it answers at all. This one needs no Docker, and
    also compares the answers with those that the Evaluator judges, see `ServingCheck`. As in TFX, a model
    that does not load in time is not blessed, and the run continues; without examples or a request_spec, the
    model is only loaded. The image and its tags in the serving_spec have no meaning here, and num_tries is
    ignored.

    Args:
        model: Channel of the `Model`, from a Trainer.
        serving_spec: Platform of the server, which must be `local_docker`.
        examples: Channel of raw `Examples`, from an ExampleGen. Default: none; the model is only loaded.
        request_spec: Split (default: the first) and number (default: 1) of the examples to send, and
            whether to write warm-up requests, with a copy of the model that a Pusher pushes if it is given
            no other model. Default: none; the model is only loaded.
        validation_spec: Limit of the time that loading takes. Default: 300 seconds.

    Raises:
        ValueError: The server is to run on Kubernetes.

    Example:
        infra_validator = InfraValidator(
            model=trainer.outputs["model"],
            examples=example_gen.outputs["examples"],
            serving_spec=ServingSpec(
                tensorflow_serving=TensorFlowServing(tags=["latest"]), local_docker=LocalDockerConfig()
            ),
            request_spec=RequestSpec(tensorflow_serving=TensorFlowServingRequestSpec()),
        )
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        serving_spec: ServingSpec,
        examples: BaseChannel | None = None,
        request_spec: RequestSpec | None = None,
        validation_spec: ValidationSpec | None = None,
    ) -> None:
        if serving_spec.WhichOneof("serving_platform") == "kubernetes":
            raise ValueError(
                "InfraValidator can't start a server on Kubernetes. Use local_docker=LocalDockerConfig(), or "
                "a ServingCheck: both test the model in a separate process on this machine. Received: "
                f"serving_spec={serving_spec}"
            )
        request = request_spec or RequestSpec()
        validation = validation_spec or ValidationSpec()
        settings = ServingCheckSettings(
            rows=request.num_examples or 1,
            max_load_seconds=validation.max_loading_time_seconds or _MAX_LOAD_SECONDS,
            warmup=request.make_warmup,
        )
        super().__init__(
            spec=ServingCheckSpec(
                model=model,
                examples=examples if request_spec else None,
                example_splits=json.dumps([request.split_name]) if request.split_name else None,
                settings=settings.to_json(),
                blessing=Channel(type=standard_artifacts.InfraBlessing),
            )
        )
