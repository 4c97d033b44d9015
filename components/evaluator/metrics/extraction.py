"""Reads examples in large batches and turns them into the input of TFMA's metrics.

TFMA's own extractors pass every example through a chain of Beam stages. Here one stage reads a
file, runs the evaluation models on thousands of examples at a time, and emits only the values that
metrics and slices need.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_model_analysis as tfma
from apache_beam.utils import shared
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.proto import config_pb2
from tfx_bsl.coders import example_coder

from components.beam.ahead import ahead
from components.evaluator.gate.slice_columns import Column, as_text, is_text, make_column, merge_values
from components.evaluator.metrics.eval_config import has_user_code, uses_model_metrics
from components.evaluator.metrics.eval_model import EvalModel
from components.nearest import nearest_first

BATCH_SIZE = 8192


@dataclass(frozen=True)
class ModelToEvaluate:
    name: str  # Its name in the EvalConfig; empty when there is only one model
    path: str  # Directory of the evaluation SavedModel
    prediction_key: str = ""  # See `EvalModel`
    label_key: str = ""  # See `EvalModel`
    weight_key: str = ""  # See `EvalModel`


@dataclass(frozen=True)
class RawFeatures:
    """The raw features that slices and metrics read."""

    names: tuple[str, ...] = ()
    # Feature that weighs examples, which is the first model's if it is not in `names`; empty without weights.
    example_weight: str = ""
    # Schema of `names` and of the columns; None infers types from the data.
    serialized_schema: bytes | None = field(default=None, repr=False)
    categories: tuple[str, ...] = ()  # Columns that the gate slices by their values
    numbers: tuple[str, ...] = ()  # Columns that the gate slices by their quantiles
    same_values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reads_all: bool = False  # True if all features are read, as the user's own metrics may need them
    keeps_examples: bool = False  # True if a metric reads the serialized examples

    @classmethod
    def from_config(
        cls,
        eval_config: config_pb2.EvalConfig,
        schema: schema_pb2.Schema | None,
        categories: Sequence[str] = (),
        numbers: Sequence[str] = (),
        weight_key: str = "",
    ) -> "RawFeatures":
        """Returns the features that a configuration names, and those of the columns that are features.

        `weight_key`: feature of the first model that weighs the examples; empty if that is a raw feature.
        """
        names = set()
        slicing_specs = list(eval_config.slicing_specs)
        for cross in eval_config.cross_slicing_specs:
            slicing_specs += [cross.baseline_spec, *cross.slicing_specs]
        for slicing_spec in slicing_specs:
            names.update(slicing_spec.feature_keys)
            names.update(slicing_spec.feature_values)
        names.update(spec.query_key for spec in eval_config.metrics_specs if spec.query_key)
        weight = eval_config.model_specs[0].example_weight_key if eval_config.model_specs else ""
        if weight and not weight_key:
            names.add(weight)
        reads_all = has_user_code(eval_config)
        keeps_examples = reads_all or uses_model_metrics(eval_config)
        serialized = None
        if schema is not None:
            features = {feature.name: feature for feature in schema.feature}
            for name in sorted(names - set(features)):
                raise ValueError(
                    f"The evaluation slices or weighs by {name!r}, which is not a raw feature. "
                    f"The raw features are: {', '.join(nearest_first(name, features))}"
                )
            categories, numbers = (
                [name for name in some if name in features] for some in (categories, numbers)
            )
            columns = features if reads_all else {*names, *categories, *numbers}
            projected = schema_pb2.Schema(feature=[features[name] for name in sorted(columns)])
            serialized = projected.SerializeToString()
        return cls(
            tuple(sorted(names)),
            weight,
            serialized,
            tuple(categories),
            tuple(numbers),
            reads_all=reads_all,
            keeps_examples=keeps_examples,
        )


@dataclass(frozen=True)
class Batch:
    labels: npt.NDArray[Any]  # `[batch_size, ...]`, from the first model
    predictions: Mapping[str, npt.NDArray[Any]]  # Predictions by model name, `[batch_size, ...]`
    # List of each example's values by feature; None for an example without values.
    features: Mapping[str, Sequence[Sequence[Any] | None]]
    prediction: str = ""  # Name of the first model's prediction, such as `logistic`; empty if not known
    # Names of the first model's classes in their order; empty if it has no names.
    classes: tuple[str, ...] = ()
    columns: Mapping[str, Column] = field(default_factory=dict)
    serialized: npt.NDArray[Any] | None = None  # The tf.Examples `[batch_size]`; None if no metric reads them

    def example_weights(self, name: str) -> npt.NDArray[np.float64]:
        for values in self.features.get(name, [None]):
            if values is None or len(values) != 1:
                raise ValueError(
                    f"Each example needs one value of {name!r}, which weighs it. Received: {values}"
                )
        return np.array([values[0] for values in self.features[name] if values], np.float64)


BASELINE_OF_OTHER_TYPES = "[the baseline has other column types] "
"""Prefix of the error for a column whose type has changed since the baseline was trained."""

_OTHER_TYPES = "Data types don't match"


class ReadAndEvaluate(beam.DoFn):
    """Turns the path of a TFRecord file of tf.Examples into `Batch`es.

    The first model supplies the labels and the order of the classes. Stages with the same cache
    `models_of` load the same models once in a process.
    """

    def __init__(
        self,
        models: Sequence[ModelToEvaluate],
        raw_features: RawFeatures,
        batch_size: int = BATCH_SIZE,
        labels_only: bool = False,
        models_of: "shared.Shared | None" = None,
    ) -> None:
        super().__init__()
        self._labels_only = labels_only
        self._models = tuple(models)
        self._raw_features = raw_features
        self._batch_size = batch_size
        self._shared = models_of or shared.Shared()
        self._loaded: dict[str, EvalModel] = {}
        self._decoder: Any = None

    def setup(self) -> None:
        """Loads the models, once for all threads of a process."""
        self._loaded = load_models(self._shared, self._models)
        wanted = self._raw_features
        asked = wanted.reads_all or (*wanted.names, *wanted.categories, *wanted.numbers)
        # Of the labels alone, nothing but the weight is asked for.
        if wanted.example_weight in wanted.names if self._labels_only else asked:
            self._decoder = example_coder.ExamplesToRecordBatchDecoder(self._raw_features.serialized_schema)

    def process(self, path: str) -> Iterator[Batch]:
        dataset = tf.data.TFRecordDataset(
            path, compression_type="GZIP" if path.endswith(".gz") else ""
        ).batch(self._batch_size)
        yield from ahead(self._evaluate(serialized, path) for serialized in dataset.as_numpy_iterator())

    def _evaluate(self, serialized: npt.NDArray[Any], path: str) -> Batch:
        first, *others = self._loaded.items()
        predictions: dict[str, npt.NDArray[Any]] = {}
        name, model = first
        try:
            if self._labels_only:
                labels = model.labels(serialized)
            else:
                evaluated = model(serialized)
                labels, predictions[name] = evaluated.labels, evaluated.predictions
                for name, other in others:
                    predictions[name] = align_classes(
                        other.predictions(serialized), other.classes(serialized), model.classes(serialized)
                    )
        except tf.errors.InvalidArgumentError as error:
            # Beam raises its own error with this text, so the text says which model it was.
            is_of_other_types = name != first[0] and _OTHER_TYPES in error.message
            raise RuntimeError(
                f"{BASELINE_OF_OTHER_TYPES if is_of_other_types else ''}"
                f"The evaluation model {self._models} cannot take the examples of {path}: "
                f"{error.message}"
            ) from error
        classes = model.classes(serialized)
        features, columns = self._decode(serialized)
        if (weights := model.weights(serialized)) is not None:
            features[self._raw_features.example_weight] = weights[:, np.newaxis].tolist()
        return Batch(
            labels,
            predictions,
            features,
            model.prediction,
            () if classes is None else tuple(map(as_text, classes)),
            columns,
            serialized if self._raw_features.keeps_examples else None,
        )

    def _decode(
        self, serialized: npt.NDArray[Any]
    ) -> tuple[dict[str, list[list[Any] | None]], dict[str, Column]]:
        if self._decoder is None:
            return {}, {}
        record_batch = self._decoder.DecodeBatch(serialized.tolist())
        wanted = self._raw_features
        names = record_batch.schema.names if wanted.reads_all else wanted.names
        arrays = {
            name: record_batch.column(index)
            for name in (*names, *wanted.categories, *wanted.numbers)
            if (index := record_batch.schema.get_field_index(name)) >= 0
        }
        for name in wanted.same_values.keys() & arrays:
            if is_text(arrays[name]):
                arrays[name] = merge_values(arrays[name], wanted.same_values[name])
        features = {name: arrays[name].to_pylist() for name in names if name in arrays}
        if self._labels_only:
            return features, {}
        return features, {
            name: make_column(arrays[name], is_category=name in wanted.categories)
            for name in (*wanted.categories, *wanted.numbers)
            if name in arrays
        }


def align_classes(
    predictions: npt.NDArray[Any], classes: npt.NDArray[Any] | None, wanted: npt.NDArray[Any] | None
) -> npt.NDArray[Any]:
    """Returns the probabilities of a model in the order of another model's classes.

    Class ids alone are not comparable: a model that was trained on fewer classes has other ids. A class
    that the model does not know has the probability 0.
    """
    if classes is None or wanted is None or np.array_equal(classes, wanted):
        return predictions
    if predictions.ndim == 1 and len(classes) == 2:  # the probability of the second class
        predictions = np.stack([1 - predictions, predictions], axis=1)
    if predictions.ndim != 2 or predictions.shape[1] != len(classes):
        return predictions  # not probabilities of classes
    columns = {name: column for column, name in enumerate(classes)}
    blank = np.zeros(len(predictions), predictions.dtype)
    ordered = [predictions[:, columns[name]] if name in columns else blank for name in wanted]
    return ordered[1] if len(wanted) == 2 else np.stack(ordered, axis=1)


class _Models(dict[str, EvalModel]):
    """Models by name. A subclass of dict, since `Shared` needs an object that takes weak references."""

    def __init__(self, models: Sequence[ModelToEvaluate]) -> None:
        super().__init__(
            {m.name: EvalModel(m.path, m.prediction_key, m.label_key, m.weight_key) for m in models}
        )


def load_models(models_of: shared.Shared, models: Sequence[ModelToEvaluate]) -> dict[str, EvalModel]:
    """Returns the models by their names, loaded once for all threads of a process."""
    loaded: dict[str, EvalModel] = models_of.acquire(lambda: _Models(models))
    return loaded


def to_extracts(batch: Batch, example_weight: str = "") -> Iterator[dict[str, Any]]:
    """Yields TFMA's extracts for each example of a batch."""
    single = len(batch.predictions) == 1
    rows = {name: _rows(values) for name, values in batch.predictions.items()}
    labels = _rows(batch.labels)
    weights = batch.example_weights(example_weight) if example_weight else None
    for i, label in enumerate(labels):
        features = {
            name: np.asarray(column[i]) for name, column in batch.features.items() if column[i] is not None
        }
        extracts = {
            # Without a metric that reads it, only its size is used.
            tfma.INPUT_KEY: b"" if batch.serialized is None else batch.serialized[i],
            tfma.FEATURES_KEY: features,
            tfma.LABELS_KEY: label,
            tfma.PREDICTIONS_KEY: (
                next(iter(rows.values()))[i] if single else {name: values[i] for name, values in rows.items()}
            ),
        }
        if weights is not None:
            extracts[tfma.EXAMPLE_WEIGHTS_KEY] = weights[i : i + 1]
        yield extracts


def _rows(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns `[batch_size]` as `[batch_size, 1]`, so that each row is an array."""
    return values[:, np.newaxis] if values.ndim == 1 else values
