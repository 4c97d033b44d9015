"""`tf.estimator.export`: the outputs of a served model, and the receivers of its inputs."""

from estimator_core.export.packs import packed_name, parse_packed
from estimator_core.export.receivers import (
    EvalInputReceiver,
    ServingInputReceiver,
    TensorServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
    build_raw_serving_input_receiver_fn,
)
from estimator_core.export.rows import build_rows_serving_input_receiver_fn
from estimator_core.spec.export_outputs import (
    ClassificationOutput,
    EvalOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)

__all__ = [
    "ClassificationOutput",
    "EvalInputReceiver",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "ServingInputReceiver",
    "TensorServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
    "build_rows_serving_input_receiver_fn",
    "packed_name",
    "parse_packed",
]
