"""What the ExampleValidator found."""

from pathlib import Path


def read_anomalies(anomalies: Path) -> list[str]:
    """Returns one sentence for each feature that does not fit the schema.

    Args:
      anomalies: Path of the ExampleAnomalies artifact.
    """
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    found = []
    for file in sorted(anomalies.glob("Split-*/SchemaDiff.pb")):
        split = file.parent.name.removeprefix("Split-")
        proto = anomalies_pb2.Anomalies.FromString(file.read_bytes())
        for feature, info in sorted(proto.anomaly_info.items()):
            text = (info.description or info.short_description).rstrip(".")
            found.append(f"{split} split, column {feature!r}: {text}.")
    return found
