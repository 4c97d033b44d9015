"""Metrics that a configuration can name."""

from dataclasses import dataclass

from pipelines.config.pipeline_config import ProblemType


@dataclass(frozen=True)
class Metric:
    """A metric that a configuration can name.

    Attributes:
        class_name: Name of its class in TFMA or Keras.
        higher_is_better: True if higher values are better; None if neither direction is.
        problem_types: Types of problems whose labels and predictions it can compare.
    """

    class_name: str
    higher_is_better: bool | None
    problem_types: tuple[ProblemType, ...]


METRICS = {
    "auc": Metric("AUC", True, ("binary",)),
    "auc_precision_recall": Metric("AUCPrecisionRecall", True, ("binary",)),
    "binary_accuracy": Metric("BinaryAccuracy", True, ("binary",)),
    "precision": Metric("Precision", True, ("binary",)),
    "recall": Metric("Recall", True, ("binary",)),
    "f1_score": Metric("F1Score", True, ("binary",)),
    "binary_crossentropy": Metric("BinaryCrossentropy", False, ("binary",)),
    "calibration": Metric("Calibration", None, ("binary", "regression")),
    "sparse_categorical_accuracy": Metric("SparseCategoricalAccuracy", True, ("multi-class",)),
    "sparse_categorical_crossentropy": Metric(
        "SparseCategoricalCrossentropy", False, ("multi-class",)
    ),
    "mean_squared_error": Metric("MeanSquaredError", False, ("regression",)),
    "root_mean_squared_error": Metric("RootMeanSquaredError", False, ("regression",)),
    "mean_absolute_error": Metric("MeanAbsoluteError", False, ("regression",)),
    "squared_pearson_correlation": Metric("SquaredPearsonCorrelation", True, ("regression",)),
    "mean_label": Metric("MeanLabel", None, ("binary", "regression")),
    "mean_prediction": Metric("MeanPrediction", None, ("binary", "regression")),
    "example_count": Metric("ExampleCount", None, ("binary", "multi-class", "regression")),
}
