import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from components.tfx.merged_statistics import MergeOnce


def add_up(numbers):
    """Returns the sum of numbers, and lists how many there were."""
    found = list(numbers)
    CALLS.append(len(found))
    return sum(found)


CALLS = []


@pytest.mark.parametrize("num_columns", [1, 40])
def test_statistics_are_merged_once_and_not_for_each_ten(num_columns):
    CALLS.clear()
    merge = MergeOnce(add_up)
    accumulator = merge.create_accumulator()
    for number in range(num_columns):
        accumulator = merge.add_input(accumulator, number)
    total = num_columns * (num_columns - 1) // 2
    assert merge.extract_output(merge.merge_accumulators([accumulator, [100], []])) == total + 100
    assert [num_columns + 1] == CALLS
    assert merge([1, 2]) == 3


def test_beam_takes_it_in_the_place_of_the_function():
    runner = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    with beam.Pipeline(runner) as pipeline:
        found = pipeline | beam.Create([(n % 2, n) for n in range(30)]) | beam.CombinePerKey(MergeOnce(sum))
        assert_that(found, equal_to([(0, 210), (1, 225)]))


def test_tfdv_merges_with_it_and_columns_are_sorted_by_name_whatever_the_order_of_the_engine():
    from tensorflow_metadata.proto.v0 import statistics_pb2
    from tfx_bsl.statistics import merge_util

    import components.tfx.compat  # noqa: F401  (TFDV imports a module that tfx-bsl has no more)

    assert isinstance(merge_util.merge_dataset_feature_statistics_list, MergeOnce)

    def statistics(*columns):
        features = [{"path": {"step": [column]}} for column in columns]
        return statistics_pb2.DatasetFeatureStatisticsList(datasets=[{"features": features}])

    (merged,) = merge_util.merge_dataset_feature_statistics_list(
        [statistics("c", "a"), statistics("x10"), statistics("b"), statistics("x2")]
    ).datasets
    assert [feature.path.step[0] for feature in merged.features] == ["a", "b", "c", "x10", "x2"]
