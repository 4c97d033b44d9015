"""Evaluation models whose predictions are raw columns, so that every metric is known beforehand."""

import shutil
from pathlib import Path

import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_model_analysis.proto import config_pb2
from tfx.types import standard_artifacts
from tfx.utils import json_utils, proto_utils

import estimator_core as estimator
from components.evaluator import executor
from components.evaluator.gate.verdict import load_verdict

tf1 = tf.compat.v1

BEAM_ARGS = [
    "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    "--sdk_container_image=unused",  # else TFX packs a copy of itself into /tmp for each executor
]


FLOAT = tf.io.FixedLenFeature([], tf.float32)
STRING = tf.io.FixedLenFeature([], tf.string)


def eval_config(text):
    return text_format.Parse(text, config_pb2.EvalConfig())


def served(column, key="outputs", function=lambda values: values):
    """Returns a signature on serialized examples: a function of a column of numbers, [batch, 1]."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples):
        return {key: function(tf.io.parse_example(examples, {column: FLOAT})[column][:, tf.newaxis])}

    return serve


def save_serving_model(make_artifact, name="", **signatures):
    """Saves a Model artifact that is no Estimator."""
    model = make_artifact(standard_artifacts.Model, name)
    tf.saved_model.save(tf.Module(), f"{model.uri}/Format-Serving", signatures=signatures)
    return model


@pytest.fixture
def make_model(tmp_path, make_artifact):
    """Returns a function that exports a Model artifact with an evaluation model."""

    def make(
        parsing,
        predict,
        label,
        name="model",
        metrics=None,
        derive=lambda features: {},
    ):
        def model_fn(features, labels, mode):
            step = tf1.train.get_global_step()
            predictions = predict(features)
            return estimator.EstimatorSpec(
                mode,
                predictions=predictions,
                loss=tf.constant(0.0),
                train_op=tf1.assign_add(step, 1),
                eval_metric_ops=metrics(features, labels, predictions) if metrics else None,
            )

        def input_fn():
            blank = {
                key: tf.zeros([1, *spec.shape], spec.dtype) if spec.dtype != tf.string else tf.constant([""])
                for key, spec in parsing.items()
            }
            return tf.data.Dataset.from_tensors((blank, label(blank)))

        def eval_input_receiver_fn():
            serialized = tf1.placeholder(tf.string, [None])
            features = tf.io.parse_example(serialized, dict(parsing))
            return estimator.export.EvalInputReceiver(
                features={**features, **derive(features)},
                receiver_tensors={"examples": serialized},
                labels=label(features),
            )

        model_dir = tmp_path / f"{name}_dir"
        trained = estimator.Estimator(model_fn, str(model_dir)).train(input_fn, steps=1)
        exported = trained.experimental_export_all_saved_models(
            str(model_dir / "export"), {estimator.ModeKeys.EVAL: eval_input_receiver_fn}
        )
        artifact = make_artifact(standard_artifacts.Model, name)
        shutil.copytree(exported.decode(), Path(artifact.uri) / "Format-TFMA")
        return artifact

    return make


class Evaluation:
    """The outputs of an execution of the Evaluator."""

    def __init__(self, evaluation, blessing):
        self.evaluation = evaluation
        self.blessing = blessing

    @property
    def verdict(self):
        return load_verdict(self.evaluation.uri)


@pytest.fixture
def evaluate(make_artifact):
    """Returns a function that executes the Evaluator."""
    executions = 0

    def run(
        examples,
        model,
        eval_config,
        checks=None,
        properties=None,
        **inputs,
    ):
        nonlocal executions
        executions += 1
        evaluation = make_artifact(standard_artifacts.ModelEvaluation, f"evaluation/{executions}")
        blessing = make_artifact(standard_artifacts.ModelBlessing, f"blessing/{executions}")
        executor.Executor(executor.Executor.Context(beam_pipeline_args=BEAM_ARGS)).Do(
            {
                "examples": [examples],
                "model": [model],
                **{key: [artifact] for key, artifact in inputs.items()},
            },
            {"evaluation": [evaluation], "blessing": [blessing]},
            {
                "eval_config": proto_utils.proto_to_json(eval_config),
                "example_splits": json_utils.dumps(None),
                "default_checks": checks.to_json() if checks else None,
                **(properties or {}),
            },
        )
        return Evaluation(evaluation, blessing)

    return run
