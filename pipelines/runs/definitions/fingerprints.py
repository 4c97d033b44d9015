"""Hashes of a component's dependencies beyond its inputs, so that a change of them makes it run."""

import hashlib
import json
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from components.user import source as user_source
from pipelines.config.pipeline_config import WITHOUT_EFFECT_ON_RESULT, PipelineConfig
from pipelines.data.profile import CsvProfile
from pipelines.root.schema.curated import CuratedSchema
from pipelines.runs.definitions.model_code import ModelCode
from pipelines.steps.code_fingerprints import library_versions, package_fingerprint

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

    from pipelines.runs.definitions.csv_to_serving import CsvToServing

_NOT_OF_THE_MODEL = (
    "name",
    "pipeline",
    "evaluator",
    "example_validator",
    "gate",
    "serving_check",
    "pusher",
    *WITHOUT_EFFECT_ON_RESULT,
)


def component_fingerprints(
    pipeline: "CsvToServing",
    run_id: str,
    data_fingerprint: str,
    code: ModelCode,
    schema: str = "",
    mixes_code: bool = False,
    root_schema: str = "",
) -> dict[str, dict[str, str]]:
    """Returns the fingerprints of what each component reads, by its id.

    A Pusher is never reused, because every blessed run has its own version.
    """
    users_code = code_fingerprint(code)[:16]
    components_code = package_fingerprint("components")
    core_code = package_fingerprint("estimator_core")
    training = {"code": users_code, "components": components_code, "core": core_code}
    own: dict[BaseNode, dict[str, str]] = {
        pipeline.example_gen: {"components": components_code, "data": data_fingerprint[:16]},
        pipeline.statistics_gen: {
            "TFDV": metadata.version("tensorflow-data-validation"),
            "formats": package_fingerprint("pipelines.data.formats"),
        },
        pipeline.schema_gen: {"schema": schema[:16]},
        pipeline.example_validator: {"components": components_code},
        pipeline.transform: {"code": users_code},
        pipeline.trainer: {**training, "other code": run_id if mixes_code else ""},
        pipeline.evaluator: {"components": components_code},
        pipeline.serving_check: {"components": components_code},
        pipeline.pusher: {"push": run_id},
    }
    if pipeline.root_schema is not None:
        own[pipeline.root_schema] = {"root schema": root_schema[:16]}
    if pipeline.test_evaluator is not None:
        own[pipeline.test_evaluator] = {"components": components_code}
    if pipeline.tuner is not None:
        own[pipeline.tuner] = {**training, "optuna": metadata.version("optuna")}
    libraries = {"libraries": library_versions()}
    return {
        component.id: {name: value for name, value in (libraries | own.get(component, {})).items() if value}
        for component in pipeline.pipeline.components
    }


def model_fingerprint(
    config: PipelineConfig,
    code: ModelCode,
    digests: Sequence[str],
    schema: CuratedSchema | None,
    type_overrides: Sequence[Sequence[str]] = (),
) -> str:
    """Returns a hash of everything that determines a model; empty without the source of its code.

    Excluded are the names of data files and spans, and how the model is judged and pushed.
    """
    users_code = code_fingerprint(code)
    if not users_code:
        return ""
    settings = config.model_dump(mode="json", exclude=set(_NOT_OF_THE_MODEL))
    del settings["data"]["path"], settings["data"]["spans"], settings["schema"]["path"]
    settings["functions"] = [
        code.preprocessing_fn,
        code.trainer,
        code.trainer_path,
        code.transform_config,
        code.custom_config,
        code.train_steps,
        code.eval_steps,
        code.required_label,
    ]
    if code.tuning is None:
        del settings["tuner"]  # as it was before there was one
    if any(type_overrides):
        settings["kept_types"] = list(map(list, type_overrides))
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for part in (users_code, schema.fingerprint if schema else "", library_versions()):
        digest.update(part.encode() + b"\0")
    for package in ("components", "estimator_core", "pipelines.data"):
        digest.update(package_fingerprint(package).encode())
    for file_digest in digests:
        digest.update(bytes.fromhex(file_digest))
    return digest.hexdigest()


def file_hashes(profile: CsvProfile) -> tuple[dict[str, Any], ...]:
    """Returns `path`, `bytes` and `sha256` of each of the user's files."""
    states = ((file, profile.states[file]) for file in profile.user_files)
    return tuple(
        {"path": str(file), "bytes": state.num_bytes, "sha256": state.sha256} for file, state in states
    )


def code_fingerprint(code: ModelCode) -> str:
    """Returns a hash of the code that Transform and Trainer call; empty when its source is not here."""
    return user_source.fingerprint(**source_location(code))


def code_definitions(code: ModelCode) -> dict[str, user_source.Definition]:
    """Returns the definitions that Transform and Trainer call; empty when their source is not here."""
    return user_source.read_definitions(**source_location(code))


def source_location(code: ModelCode) -> dict[str, str | None]:
    """Returns the location of the code that Transform and Trainer call, as arguments of `user_source`."""
    if code.module_file:
        return {"module_file": code.module_file}
    return {"import_path": code.trainer_path or code.preprocessing_fn}
