"""Statistics of each column as plain values: counts, quantiles, a small histogram."""

import math
from collections.abc import Iterator
from typing import Any

MAX_COLUMNS = 2_000
"""Maximal number of described columns; of more, the first ones."""

MAX_VALUES = 12
"""Maximal number of most frequent values of a text column."""

_MAX_BARS = 20
_MAX_LENGTH = 80


def describe_statistics(statistics: Any) -> dict[str, Any]:
    """Returns the statistics by column and split.

    `splits` has the number of examples of each split, `columns` a dict for each column with its `name`, its
    `type` and its statistics in each of the `splits`, and `num_columns` is the number of all columns.
    """
    sizes: dict[str, int] = {}
    columns: dict[str, dict[str, Any]] = {}
    for split, datasets in _datasets(statistics):
        sizes[split] = sum(dataset.num_examples for dataset in datasets)
        for dataset in datasets[:1]:
            for feature in dataset.features:
                name = feature.name or ".".join(feature.path.step)
                column = columns.setdefault(name, {"name": name, "type": "", "splits": {}})
                values = describe_feature(feature, sizes[split])
                column["type"] = column["type"] or values.pop("type")
                values.pop("type", None)
                column["splits"][split] = values
    kept = list(columns.values())[:MAX_COLUMNS]
    return {"splits": sizes, "columns": kept, "num_columns": len(columns)}


def describe_feature(feature: Any, num_examples: int) -> dict[str, Any]:
    """Returns the statistics of a column in a split, those of its parsed values under `parsed`."""
    from components.parsed_columns import readings

    kind = feature.WhichOneof("stats")
    if kind is None:
        return {"type": "", "missing": num_examples, "values": 0}
    stats = getattr(feature, kind)
    common = stats.common_stats
    # A feature that is present can be empty, which only the number of values of a single-valued one shows.
    is_single = common.max_num_values <= 1
    num_present = common.tot_num_values if is_single else common.num_non_missing
    description: dict[str, Any] = {
        "missing": int(num_examples - num_present),
        "values": int(common.tot_num_values),
    }
    if parsed := readings(feature):
        # The first format is that of these data; the other is that of the data they were compared with.
        quantity, values = next(iter(next(iter(parsed.values())).items()))
        description["parsed"] = {
            "quantity": quantity,
            "missing": num_examples - int(values.num_stats.common_stats.tot_num_values),
            **_describe_numbers(values.num_stats),
        }
    if kind == "num_stats":
        what = "whole numbers" if feature.type == feature.INT else "numbers"
        return {"type": what, **description, **_describe_numbers(stats)}
    if kind == "string_stats":
        buckets = stats.rank_histogram.buckets[:MAX_VALUES]
        return {
            "type": "text",
            **description,
            "unique": int(stats.unique),
            "length": _number(stats.avg_length),
            "top": [[_shortened(bucket.label), float(bucket.sample_count)] for bucket in buckets],
        }
    return {"type": kind.removesuffix("_stats"), **description}


def _describe_numbers(stats: Any) -> dict[str, Any]:
    quantities = ("mean", "std_dev", "min", "median", "max")
    return {
        **{name: _number(getattr(stats, name)) for name in quantities},
        "zeros": int(stats.num_zeros),
        "histogram": _histogram(stats),
    }


def _histogram(stats: Any) -> list[list[float]]:
    """Returns the buckets of equal width: low, high, count."""
    for histogram in stats.histograms:
        if histogram.type == histogram.STANDARD and not histogram.name:
            buckets = [
                [bucket.low_value, bucket.high_value, bucket.sample_count]
                for bucket in histogram.buckets[:_MAX_BARS]
            ]
            if all(math.isfinite(value) for bucket in buckets for value in bucket):
                return [[float(f"{value:.6g}") for value in bucket] for bucket in buckets]
    return []


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def count_examples(statistics: Any) -> dict[str, int]:
    """Returns the number of examples by split."""
    return {
        split: sum(dataset.num_examples for dataset in datasets) for split, datasets in _datasets(statistics)
    }


def _datasets(statistics: Any) -> Iterator[tuple[str, Any]]:
    from tensorflow_metadata.proto.v0 import statistics_pb2
    from tfx.dsl.io import fileio
    from tfx.types import artifact_utils

    for split in artifact_utils.decode_split_names(statistics.split_names):
        (uri,) = artifact_utils.get_split_uris([statistics], split)
        with fileio.open(f"{uri}/FeatureStats.pb", "rb") as stream:
            yield split, statistics_pb2.DatasetFeatureStatisticsList.FromString(stream.read()).datasets
