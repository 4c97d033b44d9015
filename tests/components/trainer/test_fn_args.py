from pathlib import Path

import pytest
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.types import standard_artifacts
from tfx.utils import json_utils, proto_utils

from components.trainer.fn_args import make_fn_args


@pytest.fixture
def make(make_examples, make_artifact):
    """Returns a function that makes the arguments of a Trainer of 70 and 3 steps."""
    examples = make_examples(train=[{"x": 1.0}], eval=[{"x": 2.0}])
    schema = make_artifact(standard_artifacts.Schema)
    (Path(schema.uri) / "schema.pbtxt").write_text("")

    def call(custom_config=None, **inputs):
        inputs |= {"examples": examples, "schema": schema}
        return make_fn_args(
            {key: [artifact] for key, artifact in inputs.items()},
            {
                "train_args": proto_utils.proto_to_json(TrainArgs(num_steps=70)),
                "eval_args": proto_utils.proto_to_json(EvalArgs(num_steps=3)),
                "custom_config": json_utils.dumps(custom_config),
            },
            serving_model_dir="serving",
            eval_model_dir="eval",
            model_run_dir="run",
        )

    return call


def test_arguments_have_the_names_of_all_tfx_versions(make, make_artifact):
    transform, base = map(make_artifact, (standard_artifacts.TransformGraph, standard_artifacts.Model))
    args = make(transform_graph=transform, base_model=base)
    assert (args.train_steps, args.eval_steps) == (70, 3)
    assert "Split-train" in args.train_files[0]
    assert "Split-eval" in args.eval_files[0]
    assert args.transform_graph_path == args.transform_output == transform.uri
    assert args.schema_path == args.schema_file
    assert args.schema_path.endswith("schema.pbtxt")
    assert args.base_model == args.warm_start_from
    assert args.base_model.startswith(base.uri)
    assert (args.serving_model_dir, args.eval_model_dir) == ("serving", "eval")
    assert args.model_run_dir == args.working_dir == "run"


def test_what_is_not_given_is_none(make):
    args = make()
    assert args.transform_graph_path is args.transform_output is None
    assert args.base_model is args.warm_start_from is args.hyperparameters is None
    assert args.custom_config == {}


def test_they_answer_as_hparams_did(make):
    args = make({"layers": [8, 4]})
    assert args.custom_config == {"layers": [8, 4]}
    assert args.get("train_steps") == args.values()["train_steps"] == 70
    assert args.get("no_such", 5) == 5
    assert args.get("no_such") is None
    assert "eval_files" in args
    assert "no_such" not in args
    args.values()["train_steps"] = 0  # a copy
    assert args.train_steps == 70
    with pytest.raises(ValueError, match=r"custom_config must be a dict\. Received: \[1\]"):
        make([1])
