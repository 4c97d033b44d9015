from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import ExampleStatistics

from pipelines.artifacts.statistics import count_examples


def test_the_examples_of_each_split_are_counted(tmp_path):
    statistics = ExampleStatistics()
    statistics.uri = str(tmp_path)
    statistics.split_names = artifact_utils.encode_split_names(["train", "eval"])
    for split, sizes in (("train", [3, 4]), ("eval", [])):
        found = statistics_pb2.DatasetFeatureStatisticsList()
        for size in sizes:
            found.datasets.add(num_examples=size)
        folder = tmp_path / f"Split-{split}"
        folder.mkdir()
        (folder / "FeatureStats.pb").write_bytes(found.SerializeToString())
    assert count_examples(statistics) == {"train": 7, "eval": 0}
