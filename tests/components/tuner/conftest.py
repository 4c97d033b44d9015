"""Executes the Tuner on a line through the origin, y = 3 x, which the tests search with."""

import json
from pathlib import Path

import pytest
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.types import standard_artifacts
from tfx.utils import json_utils, proto_utils

from components.tuner.executor import Executor

ROWS = [{"x": x / 8, "y": 3 * x / 8} for x in range(1, 21)]
# The eval split must have no part in the search: a trial that sees it has another loss.
UNSEEN = [{"x": 1.0, "y": -100.0}]


class TunerRun:
    """Executes the Tuner under a pipeline run id, each time with new output artifacts.

    It can be pickled, for an execution in another process.
    """

    def __init__(self, inputs, folder):
        self._inputs = json_utils.dumps(inputs)
        self.folder = folder
        self._executions = 0

    def __call__(
        self,
        settings,
        function="tests.components.tuner.line_module.trainer_fn",
        contract="trainer_fn",
        steps=40,
        custom_config=None,
        run_id="run-1",
    ):
        self._executions += 1
        best, results = standard_artifacts.HyperParameters(), standard_artifacts.TunerResults()
        for key, artifact in (("best_hyperparameters", best), ("tuner_results", results)):
            artifact.uri = str(self.folder / "Tuner" / key / str(self._executions))
            Path(artifact.uri).mkdir(parents=True, exist_ok=True)
        Executor(Executor.Context(pipeline_run_id=run_id)).Do(
            json_utils.loads(self._inputs),
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
def tune(make_examples, xy_schema, tmp_path):
    examples = make_examples(train=ROWS, eval=UNSEEN)
    return TunerRun({"examples": [examples], "schema": [xy_schema]}, tmp_path)


def search_of(results):
    return json.loads((results / "search.json").read_text())
