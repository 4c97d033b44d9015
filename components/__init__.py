"""TFX components of the Estimator API, together with the stock components used with them.

    from components import CsvExampleGen, Evaluator, Pusher, SchemaGen, StatisticsGen, Trainer, Transform

Our components speak TFX's artifacts and channels, so they mix with any stock TFX component. Names are
imported at first use: a Beam worker that only needs `components.tfx.compat` loads nothing else. Nothing here
imports `tfx.v1`, which loads cloud SDKs for 8 s.

Import this package before anything of TFX: it makes TFDV importable (see `components.tfx.compat`), makes TFX
import only the modules in use (see `components.tfx.packages`), and makes TFDV and TFT fit for tables with
thousands of columns (see `components.tfx.wide_tables`).
"""

import ast
import functools
import importlib
from typing import TYPE_CHECKING, Any

from components.tfx import compat as tfx_compat
from components.tfx import packages as tfx_packages
from components.tfx import wide_tables as tfx_wide_tables

tfx_compat.install()
tfx_packages.install()
tfx_wide_tables.install()

if TYPE_CHECKING:  # the public names; `_public_modules` reads them here as well
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig as ConnectionConfig
    from tensorflow_model_analysis.proto.config_pb2 import EvalConfig as EvalConfig
    from tensorflow_model_analysis.proto.config_pb2 import GenericChangeThreshold as GenericChangeThreshold
    from tensorflow_model_analysis.proto.config_pb2 import GenericValueThreshold as GenericValueThreshold
    from tensorflow_model_analysis.proto.config_pb2 import MetricConfig as MetricConfig
    from tensorflow_model_analysis.proto.config_pb2 import MetricDirection as MetricDirection
    from tensorflow_model_analysis.proto.config_pb2 import MetricsSpec as MetricsSpec
    from tensorflow_model_analysis.proto.config_pb2 import MetricThreshold as MetricThreshold
    from tensorflow_model_analysis.proto.config_pb2 import ModelSpec as ModelSpec
    from tensorflow_model_analysis.proto.config_pb2 import PerSliceMetricThreshold as PerSliceMetricThreshold
    from tensorflow_model_analysis.proto.config_pb2 import SlicingSpec as SlicingSpec
    from tfx.components.bulk_inferrer.component import BulkInferrer as BulkInferrer
    from tfx.components.schema_gen.component import SchemaGen as SchemaGen
    from tfx.dsl.components.common.resolver import Resolver as Resolver
    from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
        LatestBlessedModelStrategy as LatestBlessedModelStrategy,
    )
    from tfx.orchestration.pipeline import Pipeline as Pipeline
    from tfx.proto.example_gen_pb2 import Input as Input
    from tfx.proto.example_gen_pb2 import Output as Output
    from tfx.proto.example_gen_pb2 import SplitConfig as SplitConfig
    from tfx.proto.pusher_pb2 import PushDestination as PushDestination
    from tfx.proto.trainer_pb2 import EvalArgs as EvalArgs
    from tfx.proto.trainer_pb2 import TrainArgs as TrainArgs
    from tfx.types.channel import Channel as Channel
    from tfx.types.standard_artifacts import ExampleStatistics as ExampleStatistics
    from tfx.types.standard_artifacts import Model as Model
    from tfx.types.standard_artifacts import ModelBlessing as ModelBlessing

    from components.evaluator.component import Evaluator as Evaluator
    from components.evaluator.gate.check import Check as Check
    from components.evaluator.gate.default_checks import DefaultChecks as DefaultChecks
    from components.evaluator.gate.verdict import Verdict as Verdict
    from components.evaluator.gate.verdict import load_verdict as load_verdict
    from components.evaluator.report_details.details import load_details as load_details
    from components.example_gen.component import CsvExampleGen as CsvExampleGen
    from components.example_validator.component import ExampleValidator as ExampleValidator
    from components.example_validator.served_statistics import (
        ServedStatisticsStrategy as ServedStatisticsStrategy,
    )
    from components.example_validator.validation import DriftLimits as DriftLimits
    from components.import_schema_gen.component import ImportSchemaGen as ImportSchemaGen
    from components.installation import install as install
    from components.parsed_columns import ParsedColumns as ParsedColumns
    from components.pusher.component import Pusher as Pusher
    from components.pusher.served_model import ServedModelStrategy as ServedModelStrategy
    from components.serving_check.component import ServingCheck as ServingCheck
    from components.serving_check.executor import ServingCheckResult as ServingCheckResult
    from components.serving_check.executor import load_serving_check as load_serving_check
    from components.serving_check.infra_validator import InfraValidator as InfraValidator
    from components.serving_check.settings import ServingCheckSettings as ServingCheckSettings
    from components.statistics_gen.component import StatisticsGen as StatisticsGen
    from components.trainer.component import Trainer as Trainer
    from components.trainer.hyperparameters import hyperparameters as hyperparameters
    from components.trainer.local_cluster import LocalCluster as LocalCluster
    from components.transform.component import Transform as Transform
    from components.tuner.component import Tuner as Tuner
    from components.tuner.results import load_search as load_search
    from components.tuner.search_space import Choice as Choice
    from components.tuner.search_space import Range as Range
    from components.tuner.search_space import SearchSpace as SearchSpace
    from components.tuner.settings import TunerSettings as TunerSettings


@functools.cache
def _public_modules() -> dict[str, str]:
    """Returns the module of each public name, from the imports for type checkers."""
    source = __spec__.loader.get_source(__name__)  # type: ignore[union-attr]
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


__all__ = sorted(_public_modules())


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use (PEP 562)."""
    if name not in _public_modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_public_modules()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
