"""Compares the statistics of new data with a schema and with the statistics of other data."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.example_validator.allowed import TRAINING, Allowed
from components.example_validator.distributions import (
    Shift,
    common_stats,
    compare_missing,
    compare_readings,
    compare_values,
    new_values,
    num_present,
    percent,
)
from components.parsed_columns import readings

_Info: TypeAlias = anomalies_pb2.AnomalyInfo
_Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatistics

_Feature: TypeAlias = statistics_pb2.FeatureNameStatistics

_COMPARATORS = {
    "l_infinity": _Info.COMPARATOR_L_INFTY_HIGH,
    "jensen_shannon": _Info.COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH,
}
_MEASUREMENTS = {
    "l_infinity": anomalies_pb2.DriftSkewInfo.Measurement.L_INFTY,
    "jensen_shannon": anomalies_pb2.DriftSkewInfo.Measurement.JENSEN_SHANNON_DIVERGENCE,
}
_NAMES = {"l_infinity": "L-infinity distance", "jensen_shannon": "Jensen-Shannon divergence"}

_PART_SIZE = 500
"""Columns that TFDV validates together."""

EMPTY = frozenset({_Info.FEATURE_TYPE_NOT_PRESENT, _Info.FEATURE_TYPE_LOW_NUMBER_PRESENT})
"""Reasons of an anomaly for a column without values."""

_OTHER_TYPE = frozenset(
    value
    for name, value in _Info.Type.items()
    if name.endswith(("_NOT_STRING", "_NOT_INT", "_NOT_FLOAT", "_EXPECTED", "_NOW_FLOAT", "_NOW_INT"))
) | {_Info.UNEXPECTED_DATA_TYPE}
_BREAKING = EMPTY | _OTHER_TYPE | {_Info.SCHEMA_MISSING_COLUMN}
_WORDS = {"INT": "whole numbers (INT)", "FLOAT": "numbers with fractions (FLOAT)", "BYTES": "text (BYTES)"}


@dataclass(frozen=True)
class DriftLimits:
    """Limits above which a column has drifted.

    If a feature of the schema has its own `drift_comparator`, its threshold replaces the first two
    limits, which lead to warnings.

    Attributes:
        l_infinity: Largest difference of a share of values, from 0 to 1: for text and missing values.
        jensen_shannon: Jensen-Shannon divergence in bits, from 0 to 1: for numbers.
        breaking: Limit for either measure above which the data count as broken.
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
    fixed_schema: bool = False,
) -> anomalies_pb2.Anomalies:
    """Returns the anomalies in data.

    An anomaly has the severity ERROR if it makes training meaningless: a missing or empty column, a changed
    type, values that have drifted beyond `limits.breaking`, and for the label any mismatch with the schema
    and new values. Others have the severity WARNING.

    The result also holds the shift of each column's values (`drift_skew_info`), with the applicable limit:
    the configured one, or the shift that chance explains if that is larger. The baseline is the same split of
    the data to compare with, such as those of the live model; None compares with the schema alone.
    """
    limits = limits or DriftLimits()
    environment = TRAINING if TRAINING in schema.default_environment else None
    anomalies = _validate_in_parts(statistics, schema, environment)
    allowed = Allowed(schema if fixed_schema else None)
    types = {_name(feature): _feature_type(feature) for feature in _only(statistics).features}
    for name, info in anomalies.anomaly_info.items():
        _say_types(info, allowed.schema_type(name), types.get(name, ""))
        breaks = name == label or any(reason.type in _BREAKING for reason in info.reason)
        info.severity = _Info.ERROR if breaks else _Info.WARNING
    if baseline is not None:
        comparison = _Comparison(schema, allowed, label, limits, moving)
        comparison.add(anomalies, _only(baseline), _only(statistics))
    return anomalies


def _validate_in_parts(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    schema: schema_pb2.Schema,
    environment: str | None,
) -> anomalies_pb2.Anomalies:
    """Returns TFDV's anomalies, computed for some columns at a time: TFDV's time grows with their square."""
    features = [feature for dataset in statistics.datasets for feature in dataset.features]
    names = list(dict.fromkeys([*map(_name, features), *(feature.name for feature in schema.feature)]))
    has_groups = schema.sparse_feature or schema.weighted_feature  # of columns of several parts
    if len(names) <= _PART_SIZE or len(statistics.datasets) != 1 or has_groups:
        return tfdv.validate_statistics(statistics, schema, environment)
    present = {_name(feature): feature for feature in features}
    expected = {feature.name: feature for feature in schema.feature}
    domains = {domain.name: domain for domain in schema.string_domain}
    empty, no_columns = schema_pb2.Schema(), statistics_pb2.DatasetFeatureStatisticsList()
    empty.CopyFrom(schema)
    empty.ClearField("feature")
    empty.ClearField("string_domain")
    dataset = no_columns.datasets.add(num_examples=_only(statistics).num_examples)
    dataset.weighted_num_examples = _only(statistics).weighted_num_examples
    anomalies = anomalies_pb2.Anomalies()
    for begin in range(0, len(names), _PART_SIZE):
        part = names[begin : begin + _PART_SIZE]
        its_schema, its_statistics = schema_pb2.Schema(), type(statistics)()
        its_schema.CopyFrom(empty)
        its_schema.feature.extend(expected[name] for name in part if name in expected)
        used = dict.fromkeys(feature.domain for feature in its_schema.feature)
        its_schema.string_domain.extend(domains[name] for name in used if name in domains)
        its_statistics.CopyFrom(no_columns)
        its_statistics.datasets[0].features.extend(present[name] for name in part if name in present)
        result = tfdv.validate_statistics(its_statistics, its_schema, environment)
        result.ClearField("baseline")
        if begin:  # each part finds the same in what concerns all columns
            result.ClearField("dataset_anomaly_info")
        anomalies.MergeFrom(result)
    anomalies.baseline.CopyFrom(schema)
    return anomalies


@dataclass(frozen=True)
class _Comparison:
    """Reports differences from the data to compare with. The fields are arguments of `validate`."""

    schema: schema_pb2.Schema
    allowed: Allowed
    label: str | None
    limits: DriftLimits
    moving: Collection[str]

    def add(self, anomalies: anomalies_pb2.Anomalies, baseline: _Statistics, now: _Statistics) -> None:
        if not baseline.num_examples or not now.num_examples:
            return
        sizes = baseline.num_examples, now.num_examples
        features = {_name(feature): feature for feature in now.features}
        old_features = {_name(feature): feature for feature in baseline.features}
        for name in old_features.keys() - features.keys():
            if name not in anomalies.anomaly_info and not self.allowed.may_be_gone(name):
                message = "The column is missing."
                _add(anomalies, name, _Info.SCHEMA_MISSING_COLUMN, "Missing", message, breaks=True)
        for name in features.keys() - old_features.keys():
            # A fixed schema that has the column expects it.
            if name not in anomalies.anomaly_info and not self.allowed.schema_type(name):
                message = "The column is new."
                _add(anomalies, name, _Info.SCHEMA_NEW_COLUMN, "New", message, breaks=False)
        for name in sorted(old_features.keys() & features.keys() - set(self.moving)):
            feature, earlier = features[name], old_features[name]
            if _kind(feature) != _kind(earlier) and _has_values(feature) and _has_values(earlier):
                if not _has_reason(anomalies, name, _OTHER_TYPE):
                    message = f"The values were {_kind(earlier)}, and are {_kind(feature)} now."
                    breaks = self.allowed.schema_type(name) != _feature_type(feature)
                    _add(anomalies, name, _Info.UNEXPECTED_DATA_TYPE, "Another type", message, breaks)
                continue
            missing = compare_missing(_missing_share(earlier, baseline), _missing_share(feature, now), *sizes)
            is_more = _missing_share(feature, now) > _missing_share(earlier, baseline)
            self._add_shift(anomalies, name, missing, can_break=is_more)
            if shifts := compare_readings(earlier, feature):
                for quantity, shift in shifts.items():
                    # Times of day follow the hours that the data cover.
                    self._add_shift(anomalies, name, shift, can_break=quantity != "hours")
                    if quantity != "unread" or shift.value:
                        self._add_measurement(anomalies, name, shift)
                continue
            if _are_dates(feature) or _are_dates(earlier):
                continue  # in no common format; as values, they are always new
            self._add_new_values(anomalies, name, earlier, feature)
            moved = compare_values(earlier, feature)
            if moved is not None:
                self._add_shift(anomalies, name, moved, can_break=True)
                self._add_measurement(anomalies, name, moved)

    def _add_new_values(
        self, anomalies: anomalies_pb2.Anomalies, name: str, baseline: _Feature, now: _Feature
    ) -> None:
        allowed = self.allowed.domain_values(name)
        unknown = {value: share for value, share in new_values(baseline, now).items() if value not in allowed}
        kind = _Info.ENUM_TYPE_UNEXPECTED_STRING_VALUES
        if not unknown or _has_reason(anomalies, name, {kind}):  # already reported by the schema
            return
        most = sorted(unknown, key=lambda value: -unknown[value])[:3]
        listed = ", ".join(f"{value!r} ({percent(unknown[value])})" for value in most)
        more = f" and {len(unknown) - len(most)} more" if len(unknown) > len(most) else ""
        message = f"There are new values: {listed}{more}."
        _add(anomalies, name, kind, "New values", message, breaks=name == self.label)

    def _add_shift(
        self, anomalies: anomalies_pb2.Anomalies, name: str, shift: Shift, can_break: bool
    ) -> None:
        limit = _limit(self.schema, name, shift, self.limits)
        if not shift.exceeds(limit):
            return
        message = (
            f"The values have drifted: {shift.text} ({_NAMES[shift.measure]} "
            f"{shift.value:.3g}, limit {limit:g})."
        )
        breaks = can_break and not shift.is_of_constant and shift.exceeds(self.limits.breaking)
        _add(anomalies, name, _COMPARATORS[shift.measure], "Drift", message, breaks)

    def _add_measurement(self, anomalies: anomalies_pb2.Anomalies, name: str, shift: Shift) -> None:
        """Adds the shift of the values, large or small, to TFDV's `drift_skew_info`."""
        info = anomalies.drift_skew_info.add()
        info.path.step[:] = [name]
        limit = max(_limit(self.schema, name, shift, self.limits), shift.noise)
        info.drift_measurements.add(type=_MEASUREMENTS[shift.measure], value=shift.value, threshold=limit)


def _say_types(info: _Info, expected: str, actual: str) -> None:
    """Describes a changed type."""
    if expected not in _WORDS or actual not in _WORDS or expected == actual:
        return
    for reason in info.reason:
        if reason.type == _Info.UNEXPECTED_DATA_TYPE:
            reason.short_description = "Another type"
            reason.description = f"The values were {_WORDS[expected]}, and are {_WORDS[actual]} now."
    info.description = " ".join(reason.description.strip() for reason in info.reason)


def _has_reason(anomalies: anomalies_pb2.Anomalies, name: str, kinds: Collection[int]) -> bool:
    return name in anomalies.anomaly_info and any(
        reason.type in kinds for reason in anomalies.anomaly_info[name].reason
    )


def _missing_share(feature: _Feature, statistics: _Statistics) -> float:
    common, histograms = common_stats(feature), feature.num_stats.histograms
    num_nan = max((part.num_nan for part in histograms if common.max_num_values == 1), default=0)
    return 1 - (num_present(common) - num_nan) / float(statistics.num_examples)


def _limit(schema: schema_pb2.Schema, name: str, shift: Shift, limits: DriftLimits) -> float:
    for feature in schema.feature:
        if feature.name == name:
            comparator = feature.drift_comparator
            if shift.measure == "l_infinity" and comparator.HasField("infinity_norm"):
                return comparator.infinity_norm.threshold
            if shift.measure == "jensen_shannon" and comparator.HasField("jensen_shannon_divergence"):
                return comparator.jensen_shannon_divergence.threshold
    return getattr(limits, shift.measure)


def _add(
    anomalies: anomalies_pb2.Anomalies, name: str, kind: int, short: str, description: str, breaks: bool
) -> None:
    """Adds an anomaly to those of the same column, which gets the worst severity."""
    info = anomalies.anomaly_info[name]
    info.reason.add(type=kind, short_description=short, description=description)
    info.description = " ".join(reason.description.strip() for reason in info.reason)
    info.short_description = "; ".join(dict.fromkeys(reason.short_description for reason in info.reason))
    info.path.step[:] = [name]
    info.severity = max(info.severity, _Info.ERROR if breaks else _Info.WARNING)


def _only(statistics: statistics_pb2.DatasetFeatureStatisticsList) -> _Statistics:
    return statistics.datasets[0] if statistics.datasets else _Statistics()


def _name(feature: _Feature) -> str:
    return feature.name or ".".join(feature.path.step)


def _are_dates(feature: _Feature) -> bool:
    return any("days" in values for values in readings(feature).values())


def _has_values(feature: _Feature) -> bool:
    return num_present(common_stats(feature)) > 0


def _kind(feature: _Feature) -> str:
    """Returns the kind of a column's values; integers and other numbers are the same kind."""
    return "numbers" if feature.WhichOneof("stats") == "num_stats" else "text"


def _feature_type(feature: _Feature) -> str:
    """Returns the type that a schema gives to the values of a column."""
    if not _has_values(feature):
        return ""
    kinds = {_Feature.INT: "INT", _Feature.FLOAT: "FLOAT"}
    return kinds.get(feature.type, "BYTES")
