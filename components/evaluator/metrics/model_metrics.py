"""The metrics of an evaluation model itself (`eval_metric_ops`, `add_metrics`), as a metric of TFMA.

Source: TFMA before 0.47 computed them for EvalSavedModels: the variables of the metrics are added up over
batches. As there, their keys have no example weight, which is how TFMA finds the thresholds of
`MetricsSpec.thresholds`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.metrics import metric_types

from components.evaluator.metrics.eval_model import EvalGraph, load_graph

_BATCH_SIZE = 1000

Sums = list[npt.NDArray[Any]]
Accumulator = tuple[Sums, list[bytes]]


class ModelMetrics(metric_types.Metric):
    """Metrics of evaluation models. `name` is that of this metric in TFMA; no result has it."""

    def __init__(
        self,
        paths: Mapping[str, str],
        names: Sequence[tuple[str, str]],
        output_name: str = "",
        name: str = "model_metrics",
    ) -> None:
        super().__init__(_computations, paths=paths, names=names, output_name=output_name, name=name)


def _computations(
    paths: Mapping[str, str],
    names: Sequence[tuple[str, str]],
    output_name: str,
    name: str,
    example_weighted: bool,
) -> list[metric_types.MetricComputation]:
    del name, example_weighted  # the model weighs its metrics itself
    computations = []
    for model, path in paths.items():
        keys = {
            metric_types.MetricKey(
                metric, model_name=model, output_name=output_name, example_weighted=None
            ): name_in_model
            for metric, name_in_model in names
        }
        computations.append(
            metric_types.MetricComputation(
                list(keys), [metric_types.InputPreprocessor()], ModelMetricsCombiner(path, keys)
            )
        )
    return computations


class ModelMetricsCombiner(beam.CombineFn):
    """Adds up the variables of a model's metrics."""

    def __init__(self, path: str, keys: Mapping[metric_types.MetricKey, str]) -> None:
        self._path = path
        self._keys = dict(keys)
        self._graph: EvalGraph | None = None

    def __reduce__(self) -> Any:
        return ModelMetricsCombiner, (self._path, self._keys)  # each process loads the model

    def sums(self, serialized: npt.NDArray[Any]) -> Sums:
        return self._model().metric_sums(serialized)

    def metrics(self, sums: Sums) -> dict[metric_types.MetricKey, Any]:
        values = self._model().metric_values(sums)
        return {key: values[name] for key, name in self._keys.items() if name in values}

    def create_accumulator(self) -> Accumulator:
        """Returns the sums over no examples, and the examples that are not part of the sums yet."""
        return [], []

    def add_input(self, accumulator: Accumulator, extracts: Any) -> Accumulator:
        _, waiting = accumulator
        waiting.append(extracts[tfma.INPUT_KEY])
        return self.compact(accumulator) if len(waiting) >= _BATCH_SIZE else accumulator

    def merge_accumulators(self, accumulators: Iterable[Accumulator]) -> Accumulator:
        merged: Sums = []
        for accumulator in accumulators:
            merged = add_sums(merged, self.compact(accumulator)[0])
        return merged, []

    def compact(self, accumulator: Accumulator) -> Accumulator:
        """Makes the waiting examples part of the sums."""
        sums, waiting = accumulator
        return (add_sums(sums, self.sums(np.array(waiting, object))), []) if waiting else accumulator

    def extract_output(self, accumulator: Accumulator) -> dict[metric_types.MetricKey, Any]:
        sums, _ = self.compact(accumulator)
        return self.metrics(sums) if sums else {}

    def _model(self) -> EvalGraph:
        if self._graph is None:
            self._graph = load_graph(self._path)
        return self._graph


def add_sums(first: Sums, second: Sums) -> Sums:
    """Returns the sums over the examples of both; an empty list is the sum over none."""
    if not first or not second:
        return first or second
    return [a + b for a, b in zip(first, second, strict=True)]
