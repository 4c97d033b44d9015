"""Executes the Tuner on a line through the origin, y = 3 x, which the tests search with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, json_utils, proto_utils

from components.tuner.executor import Executor
from components.tuner.settings import TunerSettings

ROWS = [{"x": x / 8, "y": 3 * x / 8} for x in range(1, 21)]
# The eval split must have no part in the search: a trial that sees it has another loss.
UNSEEN = [{"x": 1.0, "y": -100.0}]


class TunerRun:
    """Executes the Tuner under a pipeline run id, each time with new output artifacts."""

    def __init__(self, examples: Artifact, schema: Artifact, make_artifact: Callable[..., Any]):
        self._inputs = {"examples": [examples], "schema": [schema]}
        self._make_artifact = make_artifact
        self._executions = 0

    def __call__(
        self,
        settings: TunerSettings,
        function: str = "tests.components.tuner.line_module.trainer_fn",
        contract: str = "trainer_fn",
        steps: int = 40,
        custom_config: dict[str, Any] | None = None,
        run_id: str = "run-1",
    ) -> tuple[Path, Path]:
        self._executions += 1
        best = self._make_artifact(
            standard_artifacts.HyperParameters, f"best_hyperparameters/{self._executions}"
        )
        results = self._make_artifact(
            standard_artifacts.TunerResults, f"tuner_results/{self._executions}"
        )
        Executor(Executor.Context(pipeline_run_id=run_id)).Do(
            self._inputs,
            {"best_hyperparameters": [best], "tuner_results": [results]},
            {
                "train_args": proto_utils.proto_to_json(TrainArgs(num_steps=steps)),
                "eval_args": proto_utils.proto_to_json(EvalArgs(num_steps=1)),
                "custom_config": json_utils.dumps(custom_config),
                contract: function,
                "tuner_settings": settings.to_json(),
            },
        )
        return Path(best.uri), Path(results.uri)


@pytest.fixture
def tune(
    make_examples: Callable[..., Artifact], make_artifact: Callable[..., Artifact]
) -> TunerRun:
    schema = make_artifact(standard_artifacts.Schema)
    io_utils.write_pbtxt_file(
        f"{schema.uri}/schema.pbtxt",
        schema_pb2.Schema(feature=[schema_pb2.Feature(name=name) for name in ("x", "y")]),
    )
    return TunerRun(make_examples(train=ROWS, eval=UNSEEN), schema, make_artifact)


def search_of(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / "search.json").read_text())
    return found
