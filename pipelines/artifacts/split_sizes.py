"""Number of examples of each split."""

from typing import Any


def count_examples(statistics: Any) -> dict[str, int]:
    """Returns the number of examples by split."""
    from tensorflow_metadata.proto.v0 import statistics_pb2
    from tfx.dsl.io import fileio
    from tfx.types import artifact_utils

    sizes = {}
    for split in artifact_utils.decode_split_names(statistics.split_names):
        uri = artifact_utils.get_split_uris([statistics], split)[0]
        with fileio.open(f"{uri}/FeatureStats.pb", "rb") as stream:
            found = statistics_pb2.DatasetFeatureStatisticsList.FromString(stream.read())
        sizes[split] = sum(dataset.num_examples for dataset in found.datasets)
    return sizes
