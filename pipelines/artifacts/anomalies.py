"""Findings of the ExampleValidator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTE_PREFIX = "anomaly: "
"""Prefix of a run's notes about anomalies."""

_DRIFT = ("COMPARATOR_L_INFTY_HIGH", "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH")


@dataclass(frozen=True)
class Anomaly:
    """An anomaly of a column."""

    text: str
    is_breaking: bool  # True if it makes training meaningless
    is_drift: bool = False  # True if the distribution of the values has moved
    split: str = ""  # Split of the values; empty if unknown
    column: str = ""  # Name of the column; empty if unknown


def read_anomalies(anomalies: Any) -> list[Anomaly]:
    """Returns one anomaly for each column of each split that has any."""
    from tensorflow_metadata.proto.v0 import anomalies_pb2
    from tfx.types import artifact_utils

    kinds = anomalies_pb2.AnomalyInfo.Type
    drift = {kinds.Value(name) for name in _DRIFT}
    anomalies_found = []
    for split in sorted(anomalies.splits):
        folder = Path(artifact_utils.get_split_uri([anomalies], split))
        proto = anomalies_pb2.Anomalies.FromString((folder / "SchemaDiff.pb").read_bytes())
        for feature, info in sorted(proto.anomaly_info.items()):
            text = (info.description or info.short_description).strip().rstrip(".")
            is_breaking = info.severity == anomalies_pb2.AnomalyInfo.ERROR
            is_drift = any(reason.type in drift for reason in info.reason)
            anomalies_found.append(
                Anomaly(
                    f"{split} split, column {feature!r}: {text}.",
                    is_breaking,
                    is_drift,
                    split,
                    feature,
                )
            )
    return anomalies_found


def read_drift(anomalies: Any) -> list[dict[str, Any]]:
    """Returns how far each column has moved: `split`, `column`, `measure`, `value` and `limit`.

    The ExampleValidator measures it where there are data to compare with.
    """
    from tensorflow_metadata.proto.v0 import anomalies_pb2
    from tfx.types import artifact_utils

    measures = anomalies_pb2.DriftSkewInfo.Measurement.Type
    measurements = []
    for split in sorted(anomalies.splits):
        folder = Path(artifact_utils.get_split_uri([anomalies], split))
        proto = anomalies_pb2.Anomalies.FromString((folder / "SchemaDiff.pb").read_bytes())
        for info in proto.drift_skew_info:
            for measurement in info.drift_measurements:
                measurements.append(
                    {
                        "split": split,
                        "column": ".".join(info.path.step),
                        "measure": measures.Name(measurement.type).lower(),
                        "value": measurement.value,
                        "limit": measurement.threshold,
                    }
                )
    return measurements
