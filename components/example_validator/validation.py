"""Holds the statistics of new data against a schema and against those of other data."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.example_validator.distributions import Shift, compare_missing, compare_values

_Info: TypeAlias = anomalies_pb2.AnomalyInfo
_Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatistics

_COMPARATORS = {
    "l_infinity": _Info.COMPARATOR_L_INFTY_HIGH,
    "jensen_shannon": _Info.COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH,
}
_NAMES = {"l_infinity": "L-infinity distance", "jensen_shannon": "Jensen-Shannon divergence"}

EMPTY = frozenset({_Info.FEATURE_TYPE_NOT_PRESENT, _Info.FEATURE_TYPE_LOW_NUMBER_PRESENT})
"""Reasons of an anomaly: a column without values."""

_OTHER_TYPE = frozenset(
    value
    for name, value in _Info.Type.items()
    if name.endswith(
        ("_NOT_STRING", "_NOT_INT", "_NOT_FLOAT", "_EXPECTED", "_NOW_FLOAT", "_NOW_INT")
    )
)
_BREAKING = EMPTY | _OTHER_TYPE | {_Info.SCHEMA_MISSING_COLUMN, _Info.UNEXPECTED_DATA_TYPE}


@dataclass(frozen=True)
class DriftLimits:
    """From where on a column has drifted.

    A feature of the schema that has a `drift_comparator` of its own is held against that instead of the
    two limits that warn.

    Attributes:
      l_infinity: Largest difference of a share of values, from 0 to 1: for text and missing values.
      jensen_shannon: Jensen-Shannon divergence in bits, from 0 to 1: for numbers.
      breaking: Either measure, from where on the data are taken for broken.
    """

    l_infinity: float = 0.1
    jensen_shannon: float = 0.02
    breaking: float = 0.3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must be from 0 to 1. Received: {name}={value!r}")


def validate(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    schema: schema_pb2.Schema,
    baseline: statistics_pb2.DatasetFeatureStatisticsList | None = None,
    label: str | None = None,
    limits: DriftLimits | None = None,
    moving: Collection[str] = (),
) -> anomalies_pb2.Anomalies:
    """Returns what is wrong with data.

    An anomaly has the severity ERROR if it makes training meaningless: a column that is gone, emptied or
    of another type, values that have drifted beyond `limits.breaking`, and whatever does not fit the
    schema in the label. Any other has the severity WARNING.

    Args:
      statistics: Of one split of the data.
      schema: What the data should be like.
      baseline: Statistics of the same split of the data to compare with, such as those of the model that
        serves. None compares with the schema alone.
      label: Name of the label's column.
      limits: Of drift. Default: `DriftLimits()`.
      moving: Columns that are meant to be others each time, such as times and counters: they are held
        against the schema alone.
    """
    limits = limits or DriftLimits()
    anomalies = tfdv.validate_statistics(statistics, schema)
    for name, info in anomalies.anomaly_info.items():
        breaks = name == label or any(reason.type in _BREAKING for reason in info.reason)
        info.severity = _Info.ERROR if breaks else _Info.WARNING
    if baseline is not None:
        now, before = _only(statistics), _only(baseline)
        for name, shift in _shifts(before, now, moving):
            limit = _limit(schema, name, shift, limits)
            if shift.exceeds(limit):
                _add(anomalies, name, shift, limit, shift.exceeds(limits.breaking))
    return anomalies


def _shifts(
    before: _Statistics, now: _Statistics, moving: Collection[str]
) -> Iterator[tuple[str, Shift]]:
    if not before.num_examples or not now.num_examples:
        return
    known = {_name(feature): feature for feature in before.features}
    for feature in now.features:
        name = _name(feature)
        if name not in known or name in moving:
            continue
        was, is_now = (
            1 - _common(stats).num_non_missing / sizes.num_examples
            for stats, sizes in ((known[name], before), (feature, now))
        )
        yield name, compare_missing(was, is_now, before.num_examples, now.num_examples)
        shift = compare_values(known[name], feature)
        if shift is not None:
            yield name, shift


def _limit(schema: schema_pb2.Schema, name: str, shift: Shift, limits: DriftLimits) -> float:
    for feature in schema.feature:
        if feature.name == name:
            comparator = feature.drift_comparator
            if shift.measure == "l_infinity" and comparator.HasField("infinity_norm"):
                return comparator.infinity_norm.threshold
            if shift.measure == "jensen_shannon" and comparator.HasField(
                "jensen_shannon_divergence"
            ):
                return comparator.jensen_shannon_divergence.threshold
    return getattr(limits, shift.measure)


def _add(
    anomalies: anomalies_pb2.Anomalies, name: str, shift: Shift, limit: float, breaks: bool
) -> None:
    """Adds an anomaly to those of the same column, of which the worst severity counts."""
    description = (
        f"The values have drifted: {shift.text} ({_NAMES[shift.measure]} {shift.value:.3g}, limit "
        f"{limit:g})."
    )
    info = anomalies.anomaly_info[name]
    info.reason.add(
        type=_COMPARATORS[shift.measure], short_description="Drift", description=description
    )
    info.description = " ".join(reason.description for reason in info.reason)
    info.short_description = "; ".join(
        dict.fromkeys(reason.short_description for reason in info.reason)
    )
    info.path.step[:] = [name]
    info.severity = max(info.severity, _Info.ERROR if breaks else _Info.WARNING)


def _only(statistics: statistics_pb2.DatasetFeatureStatisticsList) -> _Statistics:
    return statistics.datasets[0] if statistics.datasets else _Statistics()


def _name(feature: statistics_pb2.FeatureNameStatistics) -> str:
    return feature.name or ".".join(feature.path.step)


def _common(feature: statistics_pb2.FeatureNameStatistics) -> statistics_pb2.CommonStatistics:
    kind = feature.WhichOneof("stats")
    return getattr(feature, kind).common_stats if kind else statistics_pb2.CommonStatistics()
