"""TFX components of the Estimator API, together with the stock components used beside them.

    from components import CsvExampleGen, Evaluator, Pusher, SchemaGen, StatisticsGen, Trainer, Transform

`CsvExampleGen`, `StatisticsGen`, `ImportSchemaGen`, `ExampleValidator`, `Transform`, `Tuner`, `Trainer`,
`Evaluator`, `ServingCheck` and `Pusher` are ours; they speak TFX's artifacts and channels, so they mix with
any stock TFX component. Names are imported at first use: `import components` is instant, and a Beam worker
that only needs `components.tfx.compat` loads nothing else. Nothing here imports `tfx.v1`, which costs 8 s of
cloud SDKs.

Import this package before anything of TFX: it makes TFDV importable (see `components.tfx.compat`), and
makes TFX import only the modules in use (see `components.tfx.packages`), and makes TFDV and TFT fit for
tables with thousands of columns (see `components.tfx.wide_tables`).
"""

import importlib
from typing import TYPE_CHECKING, Any

from components.tfx import compat as tfx_compat
from components.tfx import packages as tfx_packages
from components.tfx import wide_tables as tfx_wide_tables

tfx_compat.install()
tfx_packages.install()
tfx_wide_tables.install()

if TYPE_CHECKING:
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig
    from tensorflow_model_analysis.proto.config_pb2 import (
        EvalConfig,
        GenericChangeThreshold,
        GenericValueThreshold,
        MetricConfig,
        MetricDirection,
        MetricsSpec,
        MetricThreshold,
        ModelSpec,
        PerSliceMetricThreshold,
        SlicingSpec,
    )
    from tfx.components.bulk_inferrer.component import BulkInferrer
    from tfx.components.schema_gen.component import SchemaGen
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
        LatestBlessedModelStrategy,
    )
    from tfx.orchestration.pipeline import Pipeline
    from tfx.proto.example_gen_pb2 import Input, Output, SplitConfig
    from tfx.proto.pusher_pb2 import PushDestination
    from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
    from tfx.types.channel import Channel
    from tfx.types.standard_artifacts import ExampleStatistics, Model, ModelBlessing

    from components.evaluator.component import Evaluator
    from components.evaluator.gate.check import Check
    from components.evaluator.gate.default_checks import DefaultChecks
    from components.evaluator.gate.verdict import Verdict, load_verdict
    from components.evaluator.report_details.details import load_details
    from components.example_gen.component import CsvExampleGen
    from components.example_validator.component import ExampleValidator
    from components.example_validator.served_statistics import ServedStatisticsStrategy
    from components.example_validator.validation import DriftLimits
    from components.import_schema_gen.component import ImportSchemaGen
    from components.installation import install
    from components.parsed_columns import ParsedColumns
    from components.pusher.component import Pusher
    from components.pusher.served_model import ServedModelStrategy
    from components.serving_check.component import ServingCheck
    from components.serving_check.executor import ServingCheckResult, load_serving_check
    from components.serving_check.infra_validator import InfraValidator
    from components.serving_check.settings import ServingCheckSettings
    from components.statistics_gen.component import StatisticsGen
    from components.trainer.component import Trainer
    from components.trainer.hyperparameters import hyperparameters
    from components.trainer.local_cluster import LocalCluster
    from components.transform.component import Transform
    from components.tuner.component import Tuner
    from components.tuner.results import load_search
    from components.tuner.search_space import Choice, Range, SearchSpace
    from components.tuner.settings import TunerSettings

__all__ = [
    "BulkInferrer",
    "Channel",
    "Check",
    "Choice",
    "ConnectionConfig",
    "CsvExampleGen",
    "DefaultChecks",
    "DriftLimits",
    "EvalArgs",
    "EvalConfig",
    "Evaluator",
    "ExampleStatistics",
    "ExampleValidator",
    "GenericChangeThreshold",
    "GenericValueThreshold",
    "ImportSchemaGen",
    "InfraValidator",
    "Input",
    "LatestBlessedModelStrategy",
    "LocalCluster",
    "MetricConfig",
    "MetricDirection",
    "MetricThreshold",
    "MetricsSpec",
    "Model",
    "ModelBlessing",
    "ModelSpec",
    "Output",
    "ParsedColumns",
    "PerSliceMetricThreshold",
    "Pipeline",
    "PushDestination",
    "Pusher",
    "Range",
    "Resolver",
    "SchemaGen",
    "SearchSpace",
    "ServedModelStrategy",
    "ServedStatisticsStrategy",
    "ServingCheck",
    "ServingCheckResult",
    "ServingCheckSettings",
    "SlicingSpec",
    "SplitConfig",
    "StatisticsGen",
    "TrainArgs",
    "Trainer",
    "Transform",
    "Tuner",
    "TunerSettings",
    "Verdict",
    "hyperparameters",
    "install",
    "load_details",
    "load_search",
    "load_serving_check",
    "load_verdict",
]

_TFMA_CONFIG = "tensorflow_model_analysis.proto.config_pb2"

_MODULES = {
    "BulkInferrer": "tfx.components.bulk_inferrer.component",
    "Channel": "tfx.types.channel",
    "Check": "components.evaluator.gate.check",
    "Choice": "components.tuner.search_space",
    "ConnectionConfig": "ml_metadata.proto.metadata_store_pb2",
    "CsvExampleGen": "components.example_gen.component",
    "DefaultChecks": "components.evaluator.gate.default_checks",
    "DriftLimits": "components.example_validator.validation",
    "EvalArgs": "tfx.proto.trainer_pb2",
    "EvalConfig": _TFMA_CONFIG,
    "Evaluator": "components.evaluator.component",
    "ExampleStatistics": "tfx.types.standard_artifacts",
    "ExampleValidator": "components.example_validator.component",
    "GenericChangeThreshold": _TFMA_CONFIG,
    "GenericValueThreshold": _TFMA_CONFIG,
    "ImportSchemaGen": "components.import_schema_gen.component",
    "InfraValidator": "components.serving_check.infra_validator",
    "Input": "tfx.proto.example_gen_pb2",
    "LatestBlessedModelStrategy": (
        "tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy"
    ),
    "LocalCluster": "components.trainer.local_cluster",
    "MetricConfig": _TFMA_CONFIG,
    "MetricDirection": _TFMA_CONFIG,
    "MetricThreshold": _TFMA_CONFIG,
    "MetricsSpec": _TFMA_CONFIG,
    "Model": "tfx.types.standard_artifacts",
    "ModelBlessing": "tfx.types.standard_artifacts",
    "ModelSpec": _TFMA_CONFIG,
    "Output": "tfx.proto.example_gen_pb2",
    "ParsedColumns": "components.parsed_columns",
    "PerSliceMetricThreshold": _TFMA_CONFIG,
    "Pipeline": "tfx.orchestration.pipeline",
    "PushDestination": "tfx.proto.pusher_pb2",
    "Pusher": "components.pusher.component",
    "Range": "components.tuner.search_space",
    "Resolver": "tfx.dsl.components.common.resolver",
    "SchemaGen": "tfx.components.schema_gen.component",
    "SearchSpace": "components.tuner.search_space",
    "ServedModelStrategy": "components.pusher.served_model",
    "ServedStatisticsStrategy": "components.example_validator.served_statistics",
    "ServingCheck": "components.serving_check.component",
    "ServingCheckResult": "components.serving_check.executor",
    "ServingCheckSettings": "components.serving_check.settings",
    "SlicingSpec": _TFMA_CONFIG,
    "SplitConfig": "tfx.proto.example_gen_pb2",
    "StatisticsGen": "components.statistics_gen.component",
    "TrainArgs": "tfx.proto.trainer_pb2",
    "Trainer": "components.trainer.component",
    "Transform": "components.transform.component",
    "Tuner": "components.tuner.component",
    "TunerSettings": "components.tuner.settings",
    "Verdict": "components.evaluator.gate.verdict",
    "hyperparameters": "components.trainer.hyperparameters",
    "install": "components.installation",
    "load_details": "components.evaluator.report_details.details",
    "load_search": "components.tuner.results",
    "load_serving_check": "components.serving_check.executor",
    "load_verdict": "components.evaluator.gate.verdict",
}


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
