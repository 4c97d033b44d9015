"""The executor of the ExampleValidator."""

import json
import logging
import os
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.proto.orchestration import execution_result_pb2
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils

from components.example_validator.validation import EMPTY, DriftLimits, validate

_LOGGER = logging.getLogger(__name__)

ANOMALIES_FILE = "SchemaDiff.pb"
"""The same file name as in stock TFX."""

BLESSED = "blessed"


class Executor(base_executor.BaseExecutor):
    """Validates each split, and writes its anomalies to the same place as stock TFX."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> execution_result_pb2.ExecutorOutput:
        statistics = artifact_utils.get_single_instance(input_dict["statistics"])
        anomalies = artifact_utils.get_single_instance(output_dict["anomalies"])
        baseline = next(iter(input_dict.get("baseline_statistics") or ()), None)
        excluded = json.loads(exec_properties.get("exclude_splits") or "null") or []
        limits = DriftLimits(**json.loads(exec_properties.get("limits") or "{}"))
        schema_uri = artifact_utils.get_single_uri(input_dict["schema"])
        schema = io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(schema_uri))
        splits = [name for name in _splits(statistics) if name not in excluded]
        anomalies.split_names = artifact_utils.encode_split_names(splits)
        anomalies.span = statistics.span
        by_split = {
            split: validate(
                _read_statistics(statistics, split),
                schema,
                _read_statistics(baseline, split) if baseline and split in _splits(baseline) else None,
                exec_properties.get("label") or None,
                limits,
                json.loads(exec_properties.get("moving") or "[]"),
                bool(exec_properties.get("fixed_schema")),
            )
            for split in splits
        }
        _keep_chance_out(by_split)
        for split, result in by_split.items():
            path = os.path.join(artifact_utils.get_split_uri([anomalies], split), ANOMALIES_FILE)
            io_utils.write_bytes_file(path, result.SerializeToString())
            _LOGGER.info("%d anomalies in the split %r: %s", len(result.anomaly_info), split, path)
        anomalies.set_json_value_custom_property(
            BLESSED,
            {
                split: int(not result.anomaly_info and not result.HasField("dataset_anomaly_info"))
                for split, result in by_split.items()
            },
        )
        output = execution_result_pb2.ExecutorOutput()
        output.output_artifacts["anomalies"].artifacts.append(anomalies.mlmd_artifact)
        return output


def _keep_chance_out(by_split: dict[str, anomalies_pb2.Anomalies]) -> None:
    """Makes it a warning if columns lack values in only some splits, which rare values can cause."""
    for result in by_split.values():
        for name, info in result.anomaly_info.items():
            if _is_empty(info) and not all(
                name in other.anomaly_info and _is_empty(other.anomaly_info[name])
                for other in by_split.values()
            ):
                info.severity = anomalies_pb2.AnomalyInfo.WARNING


def _is_empty(info: anomalies_pb2.AnomalyInfo) -> bool:
    """Returns True if the only anomaly of a column is that it has no values."""
    return {reason.type for reason in info.reason} <= EMPTY


def _splits(artifact: Artifact) -> list[str]:
    return artifact_utils.decode_split_names(artifact.split_names)


def _read_statistics(artifact: Artifact, split: str) -> statistics_pb2.DatasetFeatureStatisticsList:
    path = os.path.join(artifact_utils.get_split_uri([artifact], split), "FeatureStats.pb")
    with fileio.open(path, "rb") as stream:
        return statistics_pb2.DatasetFeatureStatisticsList.FromString(stream.read())
