from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.types import artifact_utils, standard_artifacts

from components.parsed_columns import add_reading
from pipelines.artifacts.statistics import MAX_VALUES, describe_feature, describe_statistics

NUMBERS = """
name: "age" type: INT
num_stats {
  common_stats { num_non_missing: 9 max_num_values: 1 tot_num_values: 7 }
  mean: 4.5 std_dev: 1.25 num_zeros: 2 min: 0 median: 4 max: 9
  histograms { type: QUANTILES buckets { low_value: 0 high_value: 9 sample_count: 7 } }
  histograms {
    type: STANDARD
    buckets { low_value: 0 high_value: 4.5 sample_count: 5 }
    buckets { low_value: 4.5 high_value: 9 sample_count: 2 }
  }
}"""


DESCRIBED = {
    "missing": 3, "mean": 4.5, "std_dev": 1.25, "min": 0, "median": 4, "max": 9, "zeros": 2,
    "histogram": [[0, 4.5, 5], [4.5, 9, 2]],
}  # fmt: skip


def feature(text):
    return text_format.Parse(text, statistics_pb2.FeatureNameStatistics())


def test_numbers_with_their_histogram_of_equal_widths():
    found = describe_feature(feature(NUMBERS), 10)
    assert found == {"type": "whole numbers", "values": 7, **DESCRIBED}


def test_several_values_in_an_example_are_not_missing_ones_and_infinity_is_none():
    text = NUMBERS.replace("max_num_values: 1 tot_num_values: 7", "max_num_values: 4 tot_num_values: 30")
    assert describe_feature(feature(text), 10)["missing"] == 1  # of 10 examples 9 have some
    found = describe_feature(feature(NUMBERS.replace("max: 9", "max: inf")), 10)
    assert found["max"] is None


def test_text_with_its_most_frequent_values():
    buckets = "".join(f'buckets {{ label: "{"x" * 90}{n}" sample_count: {40 - n} }}' for n in range(30))
    words = feature(
        'name: "w" type: STRING string_stats { common_stats { num_non_missing: 10 max_num_values: 1 '
        f"tot_num_values: 10 }} unique: 30 avg_length: 91 rank_histogram {{ {buckets} }} }}"
    )
    found = describe_feature(words, 10)
    assert (found["unique"], found["missing"], len(found["top"])) == (30, 0, MAX_VALUES)
    assert len(found["top"][0][0]) == 80
    assert found["top"][1][1] == 39


def test_the_artifact_by_column_and_split(tmp_path):
    artifact = standard_artifacts.ExampleStatistics()
    artifact.uri = str(tmp_path)
    artifact.split_names = artifact_utils.encode_split_names(["train", "eval"])
    for split, size in (("train", 10), ("eval", 8)):
        statistics = statistics_pb2.DatasetFeatureStatisticsList()
        dataset = statistics.datasets.add(num_examples=size)
        dataset.features.add().CopyFrom(feature(NUMBERS))
        if split == "eval":
            dataset.features.add(name="new", type=statistics_pb2.FeatureNameStatistics.STRING)
        folder = tmp_path / f"Split-{split}"
        folder.mkdir()
        (folder / "FeatureStats.pb").write_bytes(statistics.SerializeToString())
    found = describe_statistics(artifact)
    assert (found["splits"], found["num_columns"]) == ({"train": 10, "eval": 8}, 2)
    first, second = found["columns"]
    assert (first["name"], first["type"]) == ("age", "whole numbers")
    assert {name: one["missing"] for name, one in first["splits"].items()} == {"train": 3, "eval": 1}
    assert second["splits"] == {"eval": {"missing": 8, "values": 0}}


def test_the_values_of_a_parsed_column_are_beside_its_cells():
    column = feature(
        'name: "price" type: STRING string_stats { common_stats { num_non_missing: 9 max_num_values: 1 '
        'tot_num_values: 9 } unique: 2 rank_histogram { buckets { label: "$4" sample_count: 9 } } }'
    )
    add_reading(column, "amounts of money (USD)", "numbers", feature(NUMBERS.replace("name", "#")))
    add_reading(column, "of the former data", "numbers", feature("type: FLOAT num_stats { mean: 1 }"))
    found = describe_feature(column, 10)
    assert (found["type"], found["missing"], found["top"]) == ("text", 1, [["$4", 9.0]])
    assert found["parsed"] == {"quantity": "numbers", **DESCRIBED}
