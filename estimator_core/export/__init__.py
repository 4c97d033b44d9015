"""`tf.estimator.export`: the outputs of a served model, and the receivers of its inputs."""

from estimator_core import reexports
from estimator_core.export.packs import packed_name as packed_name
from estimator_core.export.packs import parse_packed as parse_packed
from estimator_core.export.receivers import EvalInputReceiver as EvalInputReceiver
from estimator_core.export.receivers import ServingInputReceiver as ServingInputReceiver
from estimator_core.export.receivers import TensorServingInputReceiver as TensorServingInputReceiver
from estimator_core.export.receivers import (
    build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn,
)
from estimator_core.export.receivers import (
    build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn,
)
from estimator_core.export.rows import (
    build_rows_serving_input_receiver_fn as build_rows_serving_input_receiver_fn,
)
from estimator_core.spec.export_outputs import ClassificationOutput as ClassificationOutput
from estimator_core.spec.export_outputs import EvalOutput as EvalOutput
from estimator_core.spec.export_outputs import ExportOutput as ExportOutput
from estimator_core.spec.export_outputs import PredictOutput as PredictOutput
from estimator_core.spec.export_outputs import RegressionOutput as RegressionOutput

__all__ = reexports.names(globals())
