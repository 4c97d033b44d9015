"""Pushes a blessed model to a new version, atomically, or reports the reason for not pushing it."""

import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import artifact_utils, standard_artifacts, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, json_utils, path_utils, proto_utils

from components.pusher import versions
from components.pusher.held import is_held
from components.pusher.listing import list_versions
from components.pusher.provenance import Provenance, read_provenance
from components.tfx.model_paths import serving_model_path

_LOGGER = logging.getLogger(__name__)

NOT_PUSHED_REASON_KEY = "not_pushed_reason"
UNCHANGED_VERSION_KEY = "unchanged_version"
HELD_MODEL_KEY = "held_model"
BASE_DIRECTORY_KEY = "base_directory"


@dataclass(frozen=True)
class PushSettings:
    """The `custom_config` of a Pusher, checked."""

    keep: int | None = None
    newer_than: int = 0  # Version that the new version must exceed
    taken_over: tuple[str, ...] = ()  # Pipeline runs whose push of the same model counts as this run's
    skip_unchanged: bool = False  # True to push nothing if the newest version is the same model
    model_fingerprint: str = ""  # Hash of all inputs of the model; empty if it is not known
    withdrawn: str = ""  # Directory of versions that were taken out of service; empty without one

    @classmethod
    def parse(cls, custom_config: dict[str, Any] | None) -> "PushSettings":
        config = {key: value for key, value in (custom_config or {}).items() if value is not None}
        keys = [field.name for field in fields(cls)]
        unknown = sorted(set(config) - set(keys))
        if unknown:
            raise ValueError(
                f"Pusher's custom_config takes {', '.join(map(repr, keys))} only. "
                f"Received: {', '.join(unknown)}"
            )
        for key, least in (("keep", 1), ("newer_than", 0)):
            value = config.get(key, least)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f"{key!r} must be a whole number, at least {least}. Received: {key}={value!r}"
                )
        runs = config.pop("taken_over", ())
        if isinstance(runs, str) or not all(isinstance(run, str) for run in runs):
            raise ValueError(
                f"'taken_over' must be a list of pipeline run ids. Received: taken_over={runs!r}"
            )
        for key, kind in (("skip_unchanged", bool), ("model_fingerprint", str), ("withdrawn", str)):
            if not isinstance(config.get(key, kind()), kind):
                raise ValueError(f"{key!r} must be a {kind.__name__}. Received: {key}={config[key]!r}")
        return cls(**config, taken_over=tuple(runs))


@dataclass(frozen=True)
class PushRequest:
    model_path: str  # Directory of the SavedModel; empty if it is refused, and not only held
    provenance: Provenance  # Origin of the model
    base_directory: str
    settings: PushSettings  # The component's `custom_config`
    refusal: str | None  # Reason why the model must not be pushed; None if it may be
    warmup: str | None = None  # File with the version's warm-up requests


@dataclass(frozen=True)
class Pushed:
    version: int
    destination: str


@dataclass(frozen=True)
class Unchanged:
    """A version that already holds the model, so that it was not pushed again."""

    version: int
    is_withdrawn: bool  # True if the version was taken out of service

    def __str__(self) -> str:
        if self.is_withdrawn:
            return f"the model and the data are those of version {self.version}, which was withdrawn"
        return f"the model and the data are those of version {self.version}, which is already live"


def push(request: PushRequest, now_secs: float) -> Pushed | Unchanged | None:
    """Pushes the model unless the request is refused, then removes versions beyond `keep`.

    A run that was killed after its push, and then resumed, finds its version and keeps it. Returns the
    pushed version, or the existing one of the same model; None if the request is refused.
    """
    if request.refusal is not None:
        _LOGGER.warning("Nothing is pushed: %s", request.refusal)
        return None
    settings = request.settings
    version = _already_pushed(request)
    if version is None and settings.skip_unchanged and (same := _same_model(request)):
        _LOGGER.info("Nothing is pushed: %s", same)
        return same
    if version is None:
        version = versions.push_version(
            request.model_path,
            request.base_directory,
            now_secs,
            request.provenance,
            settings.newer_than,
            request.warmup,
        )
        _LOGGER.info("Pushed version %d to %s", version, request.base_directory)
    else:
        _LOGGER.info("Version %d in %s is already this push", version, request.base_directory)
    destination = os.path.join(request.base_directory, str(version))
    if settings.keep is not None:
        removed = versions.prune_versions(request.base_directory, settings.keep)
        if removed:
            _LOGGER.info("Removed versions %s (keep=%d)", removed, settings.keep)
    return Pushed(version, destination)


def _already_pushed(request: PushRequest) -> int | None:
    """Returns the newest version if this run, or a run that it takes over, pushed it."""
    existing = list_versions(request.base_directory)
    provenance = read_provenance(request.base_directory, existing[-1]) if existing else None
    runs = {request.provenance.pipeline_run_id, *request.settings.taken_over} - {""}
    if (
        provenance is not None
        and provenance.pipeline_run_id in runs
        and provenance.model_uri == request.provenance.model_uri
    ):
        return existing[-1]
    return None


def _same_model(request: PushRequest) -> Unchanged | None:
    """Returns the newest version, or a withdrawn one, if it is the same model."""
    base, withdrawn = request.base_directory, request.settings.withdrawn
    newest = list_versions(base)[-1:]
    taken_out = list_versions(withdrawn)[::-1] if withdrawn else []
    for folder, version in [(base, v) for v in newest] + [(withdrawn, v) for v in taken_out]:
        provenance, own = read_provenance(folder, version), request.provenance
        if provenance is not None and (
            provenance.model_uri == own.model_uri
            or (own.model_fingerprint and provenance.model_fingerprint == own.model_fingerprint)
        ):
            return Unchanged(version, is_withdrawn=folder != base)
    return None


class Executor(base_executor.BaseExecutor):
    """Runs `push` on TFX's artifacts.

    A subclass with another destination overrides `Do`, and calls `CheckBlessing`, `GetModelPath`,
    `_MarkPushed` and `_MarkNotPushed`, as it would with TFX's executor. `Do` calls the overridden
    methods, too, and leaves unknown keys of custom_config to the subclass.
    """

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
        run_id = self._context.pipeline_run_id if self._context else None
        request = self._parse(input_dict, exec_properties, run_id or "")
        pushed_model = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.PUSHED_MODEL_KEY]
        )
        pushed = push(request, self._clock())
        if not isinstance(pushed, Pushed):
            self._MarkNotPushed(pushed_model)
        if isinstance(pushed, Unchanged):
            pushed_model.set_string_custom_property(UNCHANGED_VERSION_KEY, str(pushed.version))
            pushed_model.set_string_custom_property(NOT_PUSHED_REASON_KEY, str(pushed))
            return
        if pushed is None:
            pushed_model.set_string_custom_property(NOT_PUSHED_REASON_KEY, request.refusal)
            if _is_held(input_dict):
                held = {
                    "model_uri": request.provenance.model_uri,
                    "saved_model": request.model_path,
                    "warmup": request.warmup or "",
                    "fingerprint": request.provenance.model_fingerprint,
                }
                pushed_model.set_string_custom_property(HELD_MODEL_KEY, json.dumps(held))
            return
        # As stock TFX does: the artifact keeps the model when the version is pruned.
        io_utils.copy_dir(request.model_path, pushed_model.uri)
        self._MarkPushed(pushed_model, pushed.destination, str(pushed.version))

    def CheckBlessing(self, input_dict: dict[str, list[Artifact]]) -> bool:
        """Returns True if no judge among the inputs withholds its blessing."""
        return _refusal(input_dict) is None

    def GetModelPath(self, input_dict: dict[str, list[Artifact]]) -> str:
        """Returns the directory of the SavedModel to push, in the model or else in the InfraBlessing."""
        artifact = _model_artifact(input_dict)
        if artifact.type_name == standard_artifacts.Model.TYPE_NAME:
            return serving_model_path(artifact)
        if not artifact.get_int_custom_property("has_model"):
            raise FileNotFoundError(
                f"The InfraBlessing in {artifact.uri} has no model: give the Pusher model=, or the "
                "InfraValidator a RequestSpec with make_warmup=True."
            )
        return path_utils.stamped_model_path(artifact.uri)

    def _MarkPushed(
        self, model_push: Artifact, pushed_destination: str, pushed_version: str | None = None
    ) -> None:
        model_push.set_int_custom_property("pushed", 1)
        model_push.set_string_custom_property("pushed_destination", pushed_destination)
        if pushed_version is not None:
            model_push.set_string_custom_property("pushed_version", pushed_version)

    def _MarkNotPushed(self, model_push: Artifact) -> None:
        model_push.set_int_custom_property("pushed", 0)

    def _parse(
        self, input_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any], run_id: str
    ) -> PushRequest:
        destination = proto_utils.json_to_proto(
            exec_properties[standard_component_specs.PUSH_DESTINATION_KEY], PushDestination()
        )
        if destination.WhichOneof("destination") != "filesystem":
            raise ValueError(f"push_destination must be a filesystem destination. Received: {destination}")
        if base_directory := exec_properties.get(BASE_DIRECTORY_KEY):
            destination.filesystem.base_directory = base_directory
        config = json_utils.loads(exec_properties.get(standard_component_specs.CUSTOM_CONFIG_KEY) or "null")
        # The Pusher refuses unknown keys at construction, unless it has another executor, which reads them.
        names = {field.name for field in fields(PushSettings)}
        settings = PushSettings.parse({key: config[key] for key in names & set(config or {})})
        refusal = None
        if not self.CheckBlessing(input_dict):
            refusal = _refusal(input_dict) or f"{type(self).__name__}.CheckBlessing refused the model"
        # A ServingCheck may have left requests.
        blessings = input_dict.get(standard_component_specs.INFRA_BLESSING_KEY) or []
        warmup_files = (os.path.join(blessing.uri, versions.WARMUP_FILE) for blessing in blessings)
        needs_model = refusal is None or _is_held(input_dict)
        return PushRequest(
            # An InfraBlessing that is refused has no model.
            model_path=self.GetModelPath(input_dict) if needs_model else "",
            provenance=Provenance(run_id, _model_artifact(input_dict).uri, settings.model_fingerprint),
            base_directory=destination.filesystem.base_directory,
            settings=settings,
            refusal=refusal,
            warmup=next(filter(fileio.exists, warmup_files), None),
        )


def _model_artifact(input_dict: dict[str, list[Artifact]]) -> Artifact:
    models = input_dict.get(standard_component_specs.MODEL_KEY)
    return artifact_utils.get_single_instance(
        models or input_dict[standard_component_specs.INFRA_BLESSING_KEY]
    )


def _refusal(input_dict: dict[str, list[Artifact]]) -> str | None:
    """Returns the reason why the blessings forbid a push, or None."""
    held = None
    for key, judge in (
        (standard_component_specs.MODEL_BLESSING_KEY, "the Evaluator"),
        (standard_component_specs.INFRA_BLESSING_KEY, "the ServingCheck"),
    ):
        artifacts = input_dict.get(key)
        if not artifacts:
            continue
        blessing = artifact_utils.get_single_instance(artifacts)
        if blessing.get_int_custom_property("blessed") != 1:
            reason = blessing.get_string_custom_property("blessing_message")
            if not reason and judge == "the ServingCheck":
                judge = "the InfraValidator"  # TFX's gives no reason
            if not is_held(blessing):
                return f"{judge} did not bless the model" + (f": {reason}" if reason else ".")
            held = f"{judge} holds the model: {reason}"
    return held


def _is_held(input_dict: dict[str, list[Artifact]]) -> bool:
    """Returns True if the model only waits for a person: nothing but a doubt prevents the push."""
    held = input_dict.get(standard_component_specs.MODEL_BLESSING_KEY) or []
    others = input_dict.get(standard_component_specs.INFRA_BLESSING_KEY) or []
    return any(map(is_held, held)) and all(
        blessing.get_int_custom_property("blessed") == 1 for blessing in others
    )
