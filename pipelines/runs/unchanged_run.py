"""A run for which nothing has changed: data, code, settings, libraries, and served version.

All of its components would come from the cache, so its result is the served model. This is known before
TensorFlow and TFX are imported, which takes longer than the comparison.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.user import source as user_source
from pipelines.config.pipeline_config import WITHOUT_EFFECT_ON_RESULT, PipelineConfig
from pipelines.root import Root
from pipelines.root.history import unconfirmed_pushes
from pipelines.root.records import RunRecord, utc_now
from pipelines.root.schema.root_schema import RootSchema
from pipelines.runs.definitions.fingerprints import library_versions, package_fingerprint

_GENERIC_CODE = "pipelines.tabular.preprocessing.preprocessing_fn"
_AGAINST_BASELINE = ("baseline", "baseline when pushed")


def run_identity(
    config: PipelineConfig,
    data_fingerprint: str,
    spans: Sequence[dict[str, Any]],
    root_schema: str,
    accepted_run: str,
) -> str:
    """Returns a hash of everything that a run's result depends on; empty without the user's code.

    The served version is not part of it: `find_unchanged` compares that.
    """
    code = user_source.fingerprint(**_module_source(config))
    if not code:
        return ""
    extension = []
    if config.pipeline is not None:
        file = config.pipeline.extend.rpartition(":")[0]
        extension.append(user_source.fingerprint(module_file=file))
    schema = config.schema_.path
    parts = [
        config.model_dump(mode="json", exclude=set(WITHOUT_EFFECT_ON_RESULT)),
        data_fingerprint,
        list(spans),
        code,
        *extension,
        hashlib.sha256(Path(schema).read_bytes()).hexdigest() if schema else "",
        root_schema,
        accepted_run,
        library_versions(),
        list(sys.version_info[:2]),
        [package_fingerprint(package) for package in ("components", "estimator_core", "pipelines")],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def find_unchanged(
    root: Root,
    config: PipelineConfig,
    data_fingerprint: str,
    spans: Sequence[dict[str, Any]],
    schema: RootSchema | None,
) -> tuple[RunRecord, str] | None:
    """Returns the newest run whose result a new run would repeat, and its identity.

    None if there is none, or if the result is only known by running.
    """
    if unconfirmed_pushes(root):
        return None
    served = root.versions.serving()
    fingerprint = schema.fingerprint if schema else ""
    accepted = root.schema.accepted_run(schema)
    request = (config, data_fingerprint, spans)
    identity = run_identity(*request, fingerprint, accepted)
    origin = root.schema.origin()
    keeps_own = schema and not schema.is_edited and not accepted
    before_first_push = run_identity(*request, "", "") if keeps_own else ""
    for record in reversed(root.records.read_all()):
        if not record.identity or record.kubeflow_run:
            continue
        served_then = record.version if record.status == "pushed" else record.serving_version
        if served_then != served:
            continue
        made_the_schema = origin is not None and origin.run_id == record.run_id
        same = record.identity == identity or (made_the_schema and record.identity == before_first_push)
        ended = record.status in ("pushed", "unchanged", "held", "not_blessed")
        if same and ended and not _is_over(root, record):
            return record, identity
    return None


def _is_over(root: Root, record: RunRecord) -> bool:
    """Returns True if a held model was superseded, or pushed, since: a new run judges it again."""
    if record.status != "held":
        return False
    source = root.records.read(record.same_as or record.run_id) or record
    decision = source.decision
    return decision is not None and decision.kind != "rejected" and not source.awaits_decision


def unchanged_record(root: Root, run_id: str, earlier: RunRecord, identity: str) -> RunRecord:
    """Returns the record of a run that repeats the result of an earlier run."""
    source = earlier.same_as or earlier.run_id
    why = f"same data, code and settings as run {source}"
    now = utc_now()
    record = earlier.changed(
        run_id=run_id,
        started=now,
        finished=now,
        log=str(root.log(run_id)),
        report=None,
        version=None,
        mended=None,
        identity=identity,
        same_as=source,
        components=tuple(
            replace(component, status="cached", elapsed_secs=0.0, reason=why)
            for component in earlier.components
        ),
        serving_version=root.versions.serving(),
        held=None,
        decision=None,
    )
    if earlier.status == "held":
        return _held_again(record, root.records.read(source) or earlier)
    if earlier.status != "pushed":
        return record
    # The model is compared with itself now: the previous baseline no longer applies.
    return record.changed(
        status="unchanged",
        doubts=(),
        reason=f"the model and the data are those of version {earlier.version}, which is already live",
        baseline_version=earlier.version,
        baseline_metrics=earlier.metrics,
        checks=tuple(check for check in earlier.checks if check["against"] not in _AGAINST_BASELINE),
    )


def _held_again(record: RunRecord, source: RunRecord) -> RunRecord:
    """Returns the record of a run that repeats one whose model is held, or was rejected."""
    if source.decision is not None and source.decision.kind == "rejected":
        return record.changed(
            status="not_blessed", reason=f"the model is that of run {source.run_id}, {source.decision}"
        )
    reason = f"the model is that of run {source.run_id}, which waits for `approve {source.run_id}`"
    return record.changed(reason=f"{reason}: {source.reason}")


def _module_source(config: PipelineConfig) -> dict[str, str | None]:
    if config.module is None:
        return {"import_path": _GENERIC_CODE}
    if config.module.file is not None:
        return {"module_file": str(Path(config.module.file).resolve())}
    return {"import_path": f"{config.module.path}.preprocessing_fn"}
