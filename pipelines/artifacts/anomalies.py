"""Findings of the ExampleValidator."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTE_PREFIX = "anomaly: "
"""Prefix of a run's notes about anomalies."""

_DRIFT = ("COMPARATOR_L_INFTY_HIGH", "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH")


@dataclass(frozen=True)
class Anomaly:
    text: str
    is_breaking: bool  # True if it makes training meaningless
    is_drift: bool = False  # True if the distribution of the values has moved
    split: str = ""  # Split of the values; empty if unknown
    column: str = ""  # Name of the column; empty if unknown


def read_anomalies(anomalies: Any) -> list[Anomaly]:
    """Returns one anomaly for each column of each split that has any."""
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    kinds = anomalies_pb2.AnomalyInfo.Type
    drift = {kinds.Value(name) for name in _DRIFT}
    result = []
    for split, proto in _protos(anomalies):
        for column, info in sorted(proto.anomaly_info.items()):
            description = (info.description or info.short_description).strip().rstrip(".")
            result.append(
                Anomaly(
                    f"{split} split, column {column!r}: {description}.",
                    is_breaking=info.severity == anomalies_pb2.AnomalyInfo.ERROR,
                    is_drift=any(reason.type in drift for reason in info.reason),
                    split=split,
                    column=column,
                )
            )
    return result


def read_drift(anomalies: Any) -> list[dict[str, Any]]:
    """Returns how far each column has moved: `split`, `column`, `measure`, `value` and `limit`.

    The ExampleValidator measures it where there are data to compare with.
    """
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    measures = anomalies_pb2.DriftSkewInfo.Measurement.Type
    return [
        {
            "split": split,
            "column": ".".join(info.path.step),
            "measure": measures.Name(measurement.type).lower(),
            "value": measurement.value,
            "limit": measurement.threshold,
        }
        for split, proto in _protos(anomalies)
        for info in proto.drift_skew_info
        for measurement in info.drift_measurements
    ]


def _protos(anomalies: Any) -> Iterator[tuple[str, Any]]:
    from tensorflow_metadata.proto.v0 import anomalies_pb2
    from tfx.types import artifact_utils

    for split in sorted(anomalies.splits):
        folder = Path(artifact_utils.get_split_uri([anomalies], split))
        content = (folder / "SchemaDiff.pb").read_bytes()
        yield split, anomalies_pb2.Anomalies.FromString(content)
