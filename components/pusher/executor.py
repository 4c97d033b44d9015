"""Pushes a blessed model to a new version, atomically, and says why when it does not."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, json_utils, path_utils, proto_utils

from components.pusher import versions

_logger = logging.getLogger(__name__)

KEEP_KEY = "keep"
NOT_PUSHED_REASON_KEY = "not_pushed_reason"


@dataclass(frozen=True)
class PushRequest:
    """What to push, and where to.

    Attributes:
        model_path: Directory of the SavedModel.
        base_directory: Directory of versions.
        keep: Number of versions to keep; None keeps all.
        refusal: Why the model must not be pushed, in words; None if it may be.
    """

    model_path: str
    base_directory: str
    keep: int | None
    refusal: str | None


@dataclass(frozen=True)
class Pushed:
    """A version that was pushed.

    Attributes:
        version: The version.
        destination: Its directory.
    """

    version: int
    destination: str


def push(request: PushRequest, now_secs: float) -> Pushed | None:
    """Pushes the model unless the request is refused, then removes versions beyond `keep`.

    Args:
        request: What to push.
        now_secs: Unix time.

    Returns:
        What was pushed; None when the request is refused.
    """
    if request.refusal is not None:
        _logger.warning("Nothing is pushed: %s", request.refusal)
        return None
    version = versions.push_version(request.model_path, request.base_directory, now_secs)
    destination = os.path.join(request.base_directory, str(version))
    _logger.info("Pushed version %d to %s", version, destination)
    if request.keep is not None:
        removed = versions.prune_versions(request.base_directory, request.keep)
        if removed:
            _logger.info("Removed versions %s (keep=%d)", removed, request.keep)
    return Pushed(version, destination)


def parse_keep(custom_config: dict[str, Any] | None) -> int | None:
    """Returns `keep` of a Pusher's custom_config, None when it is not given.

    Raises:
        ValueError: An unknown key, or a `keep` that is not a whole number above 0.
    """
    config = custom_config or {}
    unknown = sorted(set(config) - {KEEP_KEY})
    if unknown:
        raise ValueError(
            f"Pusher's custom_config takes {KEEP_KEY!r} only. Received: {', '.join(unknown)}"
        )
    keep = config.get(KEEP_KEY)
    if keep is None:
        return None
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise ValueError(f"{KEEP_KEY!r} must be a whole number above 0. Received: keep={keep!r}")
    return keep


class Executor(base_executor.BaseExecutor):
    """Runs `push` on TFX's artifacts."""

    def __init__(
        self,
        context: base_executor.BaseExecutor.Context | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(context)
        self._clock = clock

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Pushes the model and records the result as properties of `pushed_model`."""
        request = _parse(input_dict, exec_properties)
        pushed_model = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.PUSHED_MODEL_KEY]
        )
        pushed = push(request, self._clock())
        pushed_model.set_int_custom_property("pushed", int(pushed is not None))
        if pushed is None:
            pushed_model.set_string_custom_property(NOT_PUSHED_REASON_KEY, request.refusal)
            return
        # As stock TFX does: the artifact keeps the model when the version is pruned.
        io_utils.copy_dir(request.model_path, pushed_model.uri)
        pushed_model.set_string_custom_property("pushed_destination", pushed.destination)
        pushed_model.set_string_custom_property("pushed_version", str(pushed.version))


def _parse(input_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> PushRequest:
    destination = PushDestination()
    proto_utils.json_to_proto(
        exec_properties[standard_component_specs.PUSH_DESTINATION_KEY], destination
    )
    if destination.WhichOneof("destination") != "filesystem":
        raise ValueError(
            f"push_destination must be a filesystem destination. Received: {destination}"
        )
    model = artifact_utils.get_single_instance(input_dict[standard_component_specs.MODEL_KEY])
    return PushRequest(
        model_path=path_utils.serving_model_path(
            model.uri, path_utils.is_old_model_artifact(model)
        ),
        base_directory=destination.filesystem.base_directory,
        keep=parse_keep(
            json_utils.loads(
                exec_properties.get(standard_component_specs.CUSTOM_CONFIG_KEY) or "null"
            )
        ),
        refusal=_refusal(input_dict),
    )


def _refusal(input_dict: dict[str, list[Artifact]]) -> str | None:
    """Returns why the blessings forbid a push, or None."""
    for key, judge in (
        (standard_component_specs.MODEL_BLESSING_KEY, "the Evaluator"),
        (standard_component_specs.INFRA_BLESSING_KEY, "the InfraValidator"),
    ):
        artifacts = input_dict.get(key)
        if not artifacts:
            continue
        blessing = artifact_utils.get_single_instance(artifacts)
        if blessing.get_int_custom_property("blessed") != 1:
            reason = blessing.get_string_custom_property("blessing_message")
            return f"{judge} did not bless the model" + (f": {reason}" if reason else ".")
    return None
