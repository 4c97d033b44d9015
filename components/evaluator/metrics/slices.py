"""Divides the examples of a batch into slices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from components.evaluator.metrics.extraction import Batch

SliceKey = tuple[tuple[str, Any], ...]


class Slices:
    """The slices of a configuration; without any, all examples are one slice."""

    def __init__(self, eval_config: config_pb2.EvalConfig) -> None:
        specs = list(eval_config.slicing_specs)
        self._specs = [slicer_lib.SingleSliceSpec(spec=spec) for spec in specs] or [
            slicer_lib.SingleSliceSpec()
        ]
        self.features = tuple(
            sorted({name for spec in specs for name in (*spec.feature_keys, *spec.feature_values)})
        )

    def split(self, batch: Batch) -> Iterator[tuple[SliceKey, Any]]:
        """Yields slice keys with the indices of their examples."""
        size = len(batch.labels)
        names = [name for name in self.features if name in batch.features]
        columns = [
            [None if values is None else tuple(values) for values in batch.features[name]] for name in names
        ]
        # Examples with the same values fall into the same slices: TFMA is called once for them all.
        indices_by_values: dict[Any, list[int]] = {}
        for i, values in enumerate(zip(*columns, strict=True) if columns else [()] * size):
            indices_by_values.setdefault(values, []).append(i)
        indices_by_slice: dict[SliceKey, list[list[int]]] = {}
        for values, indices in indices_by_values.items():
            features = {
                name: np.asarray(value)
                for name, value in zip(names, values, strict=True)
                if value is not None
            }
            keys = slicer_lib.get_slices_for_features_dicts([], features, self._specs)
            for slice_key in dict.fromkeys(keys):
                indices_by_slice.setdefault(slice_key, []).append(indices)
        for slice_key, parts in indices_by_slice.items():
            yield slice_key, np.sort(np.concatenate([np.asarray(p) for p in parts]))
