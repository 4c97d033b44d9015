"""The Pusher component."""

from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ExecutionParameter
from tfx.utils import json_utils

from components.pusher import executor
from components.tfx.cloud import check_executor


class PusherSpec(standard_component_specs.PusherSpec):
    """TFX's PusherSpec, with a base directory that is only known at run time."""

    PARAMETERS = {
        **standard_component_specs.PusherSpec.PARAMETERS,
        executor.BASE_DIRECTORY_KEY: ExecutionParameter(type=str, optional=True),
    }


class Pusher(base_component.BaseComponent):
    """Pushes a model to `base_directory/<version>/`, if it is blessed.

    A push is atomic: a server never sees half a version, even if the run is killed. Versions are
    Unix times and strictly increase, even if two pushes fall into one second or the clock goes
    back. `outputs['pushed_model']` has the custom properties `pushed` (1 or 0),
    `pushed_destination` and `pushed_version`, or `not_pushed_reason`; and for a model that the Evaluator
    holds, `held_model`: what a later push of it needs, as JSON. A version records the run that
    pushed it and its model (`assets.extra/push.json`), so that a pipeline run that was killed and
    resumed does not push twice.

    Example:
        pusher = Pusher(
            model=trainer.outputs["model"],
            model_blessing=evaluator.outputs["blessing"],
            push_destination=PushDestination(
                filesystem=PushDestination.Filesystem(base_directory="serving")
            ),
            custom_config={"keep": 5},
        )

    Source: TFX's Pusher. Unlike TFX's, it is atomic and monotonic, has `custom_config`, and gives
    the reason when it does not push.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        model: BaseChannel | None = None,
        model_blessing: BaseChannel | None = None,
        infra_blessing: BaseChannel | None = None,
        push_destination: PushDestination | dict[str, Any] | RuntimeParameter | None = None,
        custom_config: dict[str, Any] | None = None,
        custom_executor_spec: executor_spec.ExecutorSpec | None = None,
    ) -> None:
        """Declares the component.

        Args:
            model: Channel of `Model` artifacts, from a Trainer. Default: the model in the infra_blessing,
                of an InfraValidator whose RequestSpec has `make_warmup`.
            model_blessing: Channel of `ModelBlessing` artifacts, from an Evaluator. None pushes
                without a verdict.
            infra_blessing: Channel of `InfraBlessing` artifacts, from a ServingCheck or an InfraValidator.
                The warm-up requests of a ServingCheck become part of the version.
            push_destination: Destination with `filesystem.base_directory`; also as a dict, in which the
                base_directory may be a `RuntimeParameter`.
            custom_config: `keep`: number of newest versions to keep (at least 1); older ones are removed
                after a push; default: all are kept. `newer_than`: a version that the new version must
                exceed, such as a version that was taken out of service; default: 0. `taken_over`:
                pipeline run ids; if the newest version is from one of them and holds the same
                model, it is kept instead of pushed again; default: none. `skip_unchanged`: True
                pushes nothing if the newest version already holds the same model, or one that
                was made from the same inputs; `unchanged_version` is then that version; default: False.
                `model_fingerprint`: a hash of all inputs of the model; default: only the
                artifacts are compared. `withdrawn`: a directory of versions that were taken out of
                service, which `skip_unchanged` does not push again; default: none.
            custom_executor_spec: `ExecutorClassSpec` of another executor, such as a subclass of
                `components.pusher.executor.Executor`. It may do without a push_destination, and have a
                different custom_config.

        Raises:
            ValueError: No model or no base directory is given, `custom_config` is invalid, or the executor
                pushes to a cloud.
        """
        if model is None and infra_blessing is None:
            raise ValueError("Pusher needs a model, such as trainer.outputs['model'].")
        check_executor("Pusher", custom_executor_spec)
        if custom_executor_spec is None and self.EXECUTOR_SPEC is Pusher.EXECUTOR_SPEC:
            executor.PushSettings.parse(custom_config)
            if push_destination is None or (
                isinstance(push_destination, PushDestination)
                and not push_destination.filesystem.base_directory
            ):
                raise ValueError(
                    "Pusher needs push_destination=PushDestination(filesystem="
                    "PushDestination.Filesystem(base_directory=...)). "
                    f"Received: push_destination={push_destination!r}"
                )
        at_run_time = {}
        if isinstance(push_destination, dict):
            filesystem = push_destination.get("filesystem", {})
            if isinstance(filesystem.get("base_directory"), RuntimeParameter):
                # TFX substitutes a RuntimeParameter only if it is a whole execution property.
                at_run_time[executor.BASE_DIRECTORY_KEY] = filesystem["base_directory"]
                filesystem = {**filesystem, "base_directory": ""}
                push_destination = {**push_destination, "filesystem": filesystem}
        spec = PusherSpec(
            **at_run_time,
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            push_destination=push_destination,
            custom_config=json_utils.dumps(custom_config),
            pushed_model=Channel(type=standard_artifacts.PushedModel),
        )
        super().__init__(spec=spec, custom_executor_spec=custom_executor_spec)
