"""Executes the Trainer on a line through the origin, which the tests train on."""

from pathlib import Path

import pytest
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.types import standard_artifacts
from tfx.utils import json_utils, proto_utils

from components.trainer.executor import GenericExecutor

# y = 3 x, so the weight that is learned is 3.
ROWS = [{"x": x / 8, "y": 3 * x / 8} for x in range(1, 9)]


class TrainerRun:
    """Executes the Trainer under a pipeline run id, each time with new output artifacts."""

    executor = GenericExecutor

    def __init__(self, examples, schema, make_artifact):
        self._inputs = {"examples": [examples], "schema": [schema]}
        self._make_artifact = make_artifact
        self._executions = 0

    def __call__(self, properties, steps=100, custom_config=None, run_id="run-1", **inputs):
        self._executions += 1
        model = self._make_artifact(standard_artifacts.Model, f"model/{self._executions}")
        model_run = self._make_artifact(standard_artifacts.ModelRun, f"model_run/{self._executions}")
        context = GenericExecutor.Context(pipeline_run_id=run_id)
        self.executor(context).Do(
            {**self._inputs, **{key: [artifact] for key, artifact in inputs.items()}},
            {"model": [model], "model_run": [model_run]},
            {
                "train_args": proto_utils.proto_to_json(TrainArgs(num_steps=steps)),
                "eval_args": proto_utils.proto_to_json(EvalArgs(num_steps=2)),
                "custom_config": json_utils.dumps(custom_config),
                **properties,
            },
        )
        return Path(model.uri), Path(model_run.uri)


@pytest.fixture
def train(make_examples, make_artifact, xy_schema):
    return TrainerRun(make_examples(train=ROWS, eval=ROWS), xy_schema, make_artifact)
