"""Compares the distribution of the label in the splits, and tests whether chance explains the difference."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pipelines.data.formats.number_format import NumberFormat

MAX_P_VALUE = 1e-6
"""Chance causes a difference this large in one of a million splits."""

MIN_DISTANCE = 0.01
"""Smaller differences hardly change a metric, however significant they are."""

MAX_INTEGER_CLASSES = 20
_MIN_EXPECTED = 5  # smaller counts make the chi-square distribution a poor approximation
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class LabelComparison:
    """Comparison of the label in train and eval."""

    test: str  # `chi-square` over classes or `Kolmogorov-Smirnov` over numbers
    p_value: float  # Probability that chance causes a difference at least as large
    # Total variation distance of classes, or the largest distance of the distribution functions of
    # numbers; 0 to 1.
    distance: float
    # Share of each class by split; or quantiles of the numbers.
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)  # Number of rows by split

    @property
    def is_significant(self) -> bool:
        """True if chance does not explain the difference, and it is large enough to matter."""
        return self.p_value < MAX_P_VALUE and self.distance >= MIN_DISTANCE

    def as_record(self, label: str) -> dict[str, Any]:
        """Returns the fields for the record of a run."""
        return {"column": label, **asdict(self)}

    def describe(self, label: str) -> str:
        """Returns the largest difference in words."""
        train, evaluation = (self.shares[name] for name in ("train", "eval"))
        how = f"({self.test} test: p = {self.p_value:.2g}, distance {self.distance:.3f})"
        if self.test == "chi-square":
            name = max(train, key=lambda key: abs(train[key] - evaluation[key]))
            return (
                f"{name!r} is {train[name]:.1%} of the labels {label!r} in train and "
                f"{evaluation[name]:.1%} in eval {how}"
            )
        return (
            f"the median of {label!r} is {train['50 %']:.6g} in train and "
            f"{evaluation['50 %']:.6g} in eval {how}"
        )


def compare_labels(labels: Mapping[str, Any]) -> LabelComparison | None:
    """Compares the labels of `train` and `eval`; returns None when a split has none.

    Numbers with more than 20 different values are compared as numbers, and everything else as
    classes.
    """
    train, evaluation = np.asarray(labels["train"]), np.asarray(labels["eval"])
    if not train.size or not evaluation.size:
        return None
    sizes = {"train": train.size, "eval": evaluation.size}
    is_number = train.dtype.kind in "if"
    if is_number and np.unique(np.concatenate([train, evaluation])).size > MAX_INTEGER_CLASSES:
        distance, p_value = kolmogorov_smirnov(train, evaluation)
        shares = {
            name: {
                f"{100 * level:.0f} %": float(value)
                for level, value in zip(_QUANTILES, np.quantile(part, _QUANTILES), strict=True)
            }
            for name, part in (("train", train), ("eval", evaluation))
        }
        return LabelComparison("Kolmogorov-Smirnov", p_value, distance, shares, sizes)
    counts = {name: _count(part) for name, part in (("train", train), ("eval", evaluation))}
    classes = sorted(set(counts["train"]) | set(counts["eval"]))
    table = np.array([[counts[name][item] for item in classes] for name in sizes], np.float64)
    ratios = table / table.sum(axis=1, keepdims=True)
    return LabelComparison(
        "chi-square",
        chi_square(table)[1],
        float(np.abs(ratios[0] - ratios[1]).sum() / 2),
        {
            name: dict(zip(classes, map(float, row), strict=True))
            for name, row in zip(sizes, ratios, strict=True)
        },
        sizes,
    )


def chi_square(table: Any) -> tuple[float, float]:
    """Returns the statistic of homogeneity, and its p-value."""
    from scipy import special  # `scipy.stats` takes a second to import

    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    is_rare = expected.min(axis=0) < _MIN_EXPECTED
    if is_rare.any():
        table = np.column_stack([table[:, ~is_rare], table[:, is_rare].sum(axis=1)])
        table = table[:, table.sum(axis=0) > 0]
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    if table.shape[1] < 2:
        return 0.0, 1.0
    statistic = float(((table - expected) ** 2 / expected).sum())
    return statistic, float(special.chdtrc(table.shape[1] - 1, statistic))


def kolmogorov_smirnov(first: Any, second: Any) -> tuple[float, float]:
    """Returns the largest distance of two distribution functions, and its p-value for large samples."""
    from scipy import special

    first, second = np.sort(first), np.sort(second)
    both = np.concatenate([first, second])
    below_first = np.searchsorted(first, both, side="right") / first.size
    below_second = np.searchsorted(second, both, side="right") / second.size
    distance = float(np.abs(below_first - below_second).max())
    scaled = distance * math.sqrt(first.size * second.size / (first.size + second.size))
    return distance, float(special.kolmogorov(scaled))


def read_labels(examples: Any, column: str, number_format: NumberFormat | None = None) -> dict[str, Any]:
    """Returns the values of a column in `train` and `eval`, without rows that have none."""
    import tensorflow as tf
    from tfx.types import artifact_utils

    labels = {}
    for split in ("train", "eval"):
        uri = artifact_utils.get_split_uris([examples], split)[0]
        records = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(f"{uri}/*")), "GZIP")
        kinds = (
            tf.train.Example.FromString(record).features.feature[column].WhichOneof("kind")
            for record in records.as_numpy_iterator()
        )
        kind = next(filter(None, kinds), "bytes_list")
        dtype = {"int64_list": tf.int64, "float_list": tf.float32}.get(kind, tf.string)
        spec = {column: tf.io.VarLenFeature(dtype)}
        batches = records.batch(4_096).map(
            lambda batch, spec=spec: tf.io.parse_example(batch, spec)[column].values, num_parallel_calls=2
        )
        parts = [*batches.as_numpy_iterator()]
        values = np.concatenate(parts) if parts else np.empty(0)
        labels[split] = _as_numbers(values, number_format) if values.dtype.kind == "O" else values
    return labels


def _as_numbers(values: Any, number_format: NumberFormat | None) -> Any:
    import pyarrow

    from pipelines.data.formats.arrow_reading import read_numbers

    text = np.array([value.decode("utf-8", "replace").strip() for value in values], object)
    if number_format is None:
        return text[text != ""]
    cells = pyarrow.array(list(text), pyarrow.string())
    numbers = read_numbers(cells, number_format)
    return numbers[np.isfinite(numbers)]


def _count(values: Any) -> Counter[str]:
    distinct, counts = np.unique(values, return_counts=True)
    is_number = values.dtype.kind in "if"
    names = [np.format_float_positional(value, trim="-") if is_number else str(value) for value in distinct]
    return Counter(dict(zip(names, counts.tolist(), strict=True)))
