"""What the ExampleValidator found."""

from pathlib import Path
from typing import Any


def read_anomalies(anomalies: Any) -> list[str]:
    """Returns one sentence for each feature that does not fit the schema.

    Args:
      anomalies: The ExampleAnomalies artifact.
    """
    from tensorflow_metadata.proto.v0 import anomalies_pb2
    from tfx.types import artifact_utils

    found = []
    for split in sorted(anomalies.splits):
        folder = Path(artifact_utils.get_split_uri([anomalies], split))
        proto = anomalies_pb2.Anomalies.FromString((folder / "SchemaDiff.pb").read_bytes())
        for feature, info in sorted(proto.anomaly_info.items()):
            text = (info.description or info.short_description).rstrip(".")
            found.append(f"{split} split, column {feature!r}: {text}.")
    return found
