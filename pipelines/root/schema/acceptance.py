"""`schema accept`: the findings of a run in new data become the reference for later data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.baseline import statistics_folder
from pipelines.root.history import held_ids, mark_killed
from pipelines.root.migration import take_over
from pipelines.root.records import RunRecord
from pipelines.root.schema.root_schema import RootSchema
from pipelines.root.schema.table import describe_changes
from pipelines.root.schema.text import schema_to_keep

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0.schema_pb2 import Schema

_VALIDATOR = "ExampleValidator"


@dataclass(frozen=True)
class Acceptance:
    """Result of accepting a schema."""

    run_id: str
    lines: tuple[str, ...]  # Changes to the schema, as text


def accept_schema(root: Root, run_id: str | None = None) -> Acceptance:
    """Makes the schema and the statistics of a run the reference for later data."""
    if not root.runs.is_dir():
        raise BadInputError(f"There are no runs in {root}.")
    with root.lock.exclusively("schema accept"):
        mark_killed(root)
        taken_over = take_over(root)  # no run may have come yet since the update of this program
        newest = root.records.newest()  # `--resume` may continue it
        root.schema.adopt(*([newest.run_id] if newest else []), *held_ids(root))
        record = _choose(root, run_id)
        before = root.schema.read()
        compared_before = root.schema.accepted_run(before)
        if before is not None and compared_before == record.run_id and not before.is_edited:
            raise BadInputError(
                f"There is nothing to accept: run {record.run_id} was accepted already, on "
                f"{before.origin.written if before and before.origin else ''}, and the schema has not been "
                "edited since."
            )
        statistics = _statistics(root, record.run_id)
        accepted = _accepted(before, statistics, record)
        newest_number = newest.number if newest else 0
        root.schema.replace(accepted, record.run_id, record.columns, newest_number)
    lines = ["+ the schema, which the root did not have"]
    if before is not None:
        lines = describe_changes(before.schema, accepted) or ["= the schema stays as it is"]
    if compared_before != record.run_id:
        served = root.versions.serving()
        was = f"run {compared_before}" if compared_before else served and f"version {served}"
        before_that = f" (until now: {was})" if was else ""
        lines.append(f"~ new data are compared with those of run {record.run_id}{before_that}")
    if taken_over:
        lines.insert(0, f"! {taken_over}")
    return Acceptance(record.run_id, tuple(lines))


def _choose(root: Root, run_id: str | None) -> RunRecord:
    records = {record.run_id: record for record in root.records.read_all()}
    if not records:
        raise BadInputError(f"There are no runs in {root}.")
    if run_id is not None and run_id not in records:
        raise BadInputError(f"There is no run {run_id!r} in {root}. Runs: {', '.join(list(records)[::-1])}.")
    validated = [record for record in records.values() if _was_validated(record)]
    record = records[run_id] if run_id else next(reversed(validated), None)
    if record is None or not _was_validated(record):
        which = f"run {run_id} ended before" if run_id else f"no run in {root} reached"
        raise BadInputError(f"There is nothing to accept: {which} the validation of its data.")
    config = record.validated_config()
    if config.schema_.path is not None:
        raise BadInputError(
            f"Run {record.run_id} has schema.path = {config.schema_.path!r}, which overrides the "
            "root's schema. Change that file; or leave schema.path out."
        )
    if not _found_anomalies(record):
        others = [item.run_id for item in validated if _found_anomalies(item)]
        advice = f" Others found some: {', '.join(others[::-1])}." if others else ""
        raise BadInputError(
            f"There is nothing to accept: the validation of run {record.run_id} found no anomalies.{advice}"
        )
    return record


def _was_validated(record: RunRecord) -> bool:
    return any(part.name == _VALIDATOR and part.status != "failed" for part in record.components)


def _found_anomalies(record: RunRecord) -> bool:
    return any(note.startswith(NOTE_PREFIX) for note in record.notes)


def _statistics(root: Root, run_id: str) -> list[Any]:
    from tensorflow_metadata.proto.v0 import statistics_pb2

    folder = statistics_folder(root, run_id)
    files = sorted(folder.glob("Split-*/FeatureStats.pb"))
    if not files:
        raise BadInputError(
            f"The statistics of run {run_id} no longer exist ({folder}). Run with the new data again, and "
            "accept that run."
        )
    return [statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes()) for file in files]


def _accepted(before: RootSchema | None, statistics: list[Any], record: RunRecord) -> "Schema":
    """Returns a schema that the statistics' data fit, as close as possible to the previous schema."""
    import tensorflow_data_validation as tfdv

    config = record.validated_config()
    schema = tfdv.infer_schema(statistics[0], infer_feature_shape=False)
    for part in statistics[1:]:
        schema = tfdv.update_schema(schema, part, infer_feature_shape=False)
    inferred = schema_to_keep(
        schema,
        {column["name"]: column["kind"] for column in record.columns},
        config.data.label,
        moving=config.example_validator.moving,
    )
    return inferred if before is None else _merged(before.schema, inferred, statistics)


def _merged(before: "Schema", inferred: "Schema", statistics: list[Any]) -> "Schema":
    """Returns the previous schema, changed only where it does not fit: edits that fit are kept."""
    import tensorflow_data_validation as tfdv
    from tensorflow_metadata.proto.v0 import schema_pb2

    from components.example_validator.allowed import Allowed

    features_before = {feature.name: feature for feature in before.feature}
    now = {feature.name: feature for feature in inferred.feature}
    allowed = Allowed(before)
    schema = schema_pb2.Schema()
    schema.CopyFrom(before)
    del schema.feature[:]
    for name, feature in features_before.items():
        if name in now and _keeps_type(feature, now[name]):
            schema.feature.add().CopyFrom(feature)
        elif name in now:
            _take(schema, inferred, name)
        elif allowed.may_be_gone(name):
            schema.feature.add().CopyFrom(feature)
    for name in now:
        if name not in features_before:
            _take(schema, inferred, name)
    for part in statistics:
        schema = tfdv.update_schema(schema, part, infer_feature_shape=False)
    misfits = {
        name
        for part in statistics
        for name in tfdv.validate_statistics(part, schema).anomaly_info
        if name in now
    }
    for name in misfits:
        _take(schema, inferred, name)
    for feature in schema.feature:
        earlier = features_before.get(feature.name)
        if earlier and feature.presence.min_fraction < earlier.presence.min_fraction:
            feature.presence.ClearField("min_fraction")  # later data will lack a few more values
    return schema


def _keeps_type(feature: Any, now: Any) -> bool:
    """Returns whether a column still has its type; one without values fits any type."""
    if now.lifecycle_stage:
        return True
    return not feature.lifecycle_stage and feature.type == now.type


def _take(schema: "Schema", source: "Schema", name: str) -> None:
    """Copies a feature of another schema, with its domain, into a schema."""
    (feature,) = (item for item in source.feature if item.name == name)
    kept = [item for item in schema.feature if item.name == name]
    (kept[0] if kept else schema.feature.add()).CopyFrom(feature)
    if feature.domain:
        (domain,) = (item for item in source.string_domain if item.name == feature.domain)
        others = [item for item in schema.string_domain if item.name == feature.domain]
        (others[0] if others else schema.string_domain.add()).CopyFrom(domain)
