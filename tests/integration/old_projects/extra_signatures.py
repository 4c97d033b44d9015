"""Wraps canned Estimators: more signatures, more metrics, and an export at every evaluation."""

import collections
import json
import os
import shutil

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.lib.io import file_io
from tensorflow.python.saved_model import loader, signature_constants, tag_constants
from tensorflow.python.training import session_run_hook
from tensorflow_estimator.python.estimator import estimator as estimator_lib
from tensorflow_estimator.python.estimator import exporter as exporter_lib
from tensorflow_estimator.python.estimator import gc, util
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib
from tensorflow_estimator.python.estimator import run_config as run_config_lib
from tensorflow_estimator.python.estimator import training as training_lib
from tensorflow_estimator.python.estimator.canned import (
    head,
    linear,
    metric_keys,
    optimizers,
    parsing_utils,
    prediction_keys,
)
from tensorflow_estimator.python.estimator.export import export as export_lib
from tensorflow_estimator.python.estimator.export import export_output as export_output_lib
from tensorflow_estimator.python.estimator.inputs import numpy_io
from tensorflow_estimator.python.estimator.mode_keys import ModeKeys

FEATURES = ["x", "y"]


def _examples(count, seed):
    rng = np.random.RandomState(seed)
    features = {name: rng.rand(count, 1).astype(np.float32) for name in FEATURES}
    features["key"] = np.array([[f"key-{i}"] for i in range(count)])
    labels = (2 * features["x"] + features["y"] > 1.4).astype(np.int32)
    return features, labels


def _input_fn(count, seed, num_epochs=1, with_labels=True):
    features, labels = _examples(count, seed)
    return numpy_io.numpy_input_fn(
        features, labels if with_labels else None, batch_size=8, num_epochs=num_epochs, shuffle=False
    )


def _feature_columns():
    return [tf.feature_column.numeric_column(name) for name in FEATURES]


def forward_key(estimator, key):
    """Returns an Estimator whose predictions carry a feature, and whose exports have a signature more."""

    def new_model_fn(features, labels, mode, config):
        features = dict(features)
        forwarded = features.pop(key, None)
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None or forwarded is None:
            return spec
        predictions = dict(spec.predictions)
        if key in predictions:
            raise ValueError(f"{key} is a prediction already")
        predictions[key] = forwarded
        export_outputs = spec.export_outputs
        if export_outputs:
            export_outputs = dict(export_outputs)
            export_outputs["with_key"] = export_output_lib.PredictOutput(
                {key: forwarded, "odds": tf.exp(spec.predictions[prediction_keys.PredictionKeys.LOGITS])}
            )
            default = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
            for name, output in spec.export_outputs.items():
                if name != default and output == export_outputs[default]:
                    export_outputs[default] = export_outputs["with_key"]
        return spec._replace(predictions=predictions, export_outputs=export_outputs)

    return estimator_lib.Estimator(
        model_fn=new_model_fn, model_dir=estimator.model_dir, config=estimator.config
    )


def more_metrics(estimator, metric_fn):
    """Returns an Estimator with the metrics of `metric_fn`, which gets the arguments it names."""
    wanted = util.fn_args(metric_fn)

    def new_model_fn(features, labels, mode, config):
        spec = estimator.model_fn(features=features, labels=labels, mode=mode, config=config)
        if mode != ModeKeys.EVAL:
            return spec
        offered = {"features": features, "labels": labels, "predictions": spec.predictions}
        metrics = collections.OrderedDict(sorted(spec.eval_metric_ops.items()))
        metrics.update(metric_fn(**{name: offered[name] for name in wanted}))
        return spec._replace(eval_metric_ops=metrics)

    return estimator_lib.Estimator(new_model_fn, estimator.model_dir, estimator.config)


def _mean_odds(predictions, features):
    logits = predictions[prediction_keys.PredictionKeys.LOGITS]
    return {
        "mean_odds": tf.compat.v1.metrics.mean(tf.exp(logits)),
        metric_keys.MetricKeys.AUC_PR + "/x": tf.compat.v1.metrics.mean(features["x"]),
    }


class ContinuousExporter(exporter_lib.Exporter):
    """Exports at every evaluation, and keeps the newest exports."""

    def __init__(self, name, serving_input_receiver_fn, exports_to_keep=2, as_text=False):
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._exports_to_keep = exports_to_keep
        self._as_text = as_text
        self.notes = []

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        result = estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )
        self.notes.append(
            {
                "type": type(result).__name__,
                "checkpoint": os.path.basename(checkpoint_path),
                "final": bool(is_the_final_export),
                "loss": float(eval_result[metric_keys.MetricKeys.LOSS]),
                "step": int(eval_result["global_step"]),
                "below": os.path.relpath(export_path, estimator.model_dir),
            }
        )
        self._garbage_collect_exports(export_path)
        return result

    def _garbage_collect_exports(self, export_dir_base):
        def version_of(path):
            name = os.path.basename(path.path)
            return path._replace(export_version=int(name)) if name.isdigit() else None

        keep = gc._largest_export_versions(self._exports_to_keep)
        delete = gc._negation(keep)
        for path in delete(gc._get_paths(export_dir_base, parser=version_of)):
            file_io.delete_recursively_v2(path.path)


class StepNotes(session_run_hook.SessionRunHook):
    """Keeps the losses by step."""

    def __init__(self):
        self.losses = []

    def begin(self):
        self._fetches = {
            "step": tf.compat.v1.train.get_global_step(),
            "loss": ops.get_collection(ops.GraphKeys.LOSSES)[0],
        }

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results["loss"]))


def _serving_input_receiver_fn():
    receiver_tensors = {name: tf.compat.v1.placeholder(tf.float32, [None, 1], name=name) for name in FEATURES}
    receiver_tensors["key"] = tf.compat.v1.placeholder(tf.string, [None, 1], name="key")
    return export_lib.ServingInputReceiver(dict(receiver_tensors), receiver_tensors)


def _own_model_fn(features, labels, mode, params, config):
    """A head of the library around logits of our own."""
    del config
    net = tf.concat([features[name] for name in FEATURES], axis=1)
    with tf.compat.v1.variable_scope("own"):
        kernel = tf.compat.v1.get_variable(
            "kernel", [2, 1], initializer=tf.compat.v1.constant_initializer([[0.3], [-0.2]])
        )
        bias = tf.compat.v1.get_variable("bias", [1], initializer=tf.compat.v1.zeros_initializer())
    logits = tf.matmul(net, kernel) + bias
    own_head = head._binary_logistic_head_with_sigmoid_cross_entropy_loss(
        thresholds=[0.4], name="own", loss_reduction=tf.compat.v1.losses.Reduction.SUM
    )
    optimizer = optimizers.get_optimizer_instance(params["optimizer"], learning_rate=0.05)
    return own_head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        logits=logits,
        train_op_fn=lambda loss: optimizer.minimize(loss, tf.compat.v1.train.get_global_step()),
    )


def _serve(path, signature_name, feeds):
    """Returns the answer of a signature in a session."""
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta_graph = loader.load(session, [tag_constants.SERVING], path)
        signature = meta_graph.signature_def[signature_name]
        feed_dict = {signature.inputs[name].name: value for name, value in feeds.items()}
        fetches = {name: info.name for name, info in signature.outputs.items()}
        return {name: _plain(value) for name, value in session.run(fetches, feed_dict).items()}


def _plain(value):
    value = np.asarray(value)
    return value.astype(str).tolist() if value.dtype.kind in "OS" else value.tolist()


def _floats(metrics):
    return {name: float(value) for name, value in sorted(metrics.items())}


def _run_canned(config):
    canned = linear.LinearClassifier(_feature_columns(), config=config, optimizer="Adagrad")
    estimator = more_metrics(forward_key(canned, "key"), _mean_odds)
    exporter = ContinuousExporter("each", _serving_input_receiver_fn, as_text=False)
    notes = StepNotes()
    evaluation, exports = training_lib.train_and_evaluate(
        estimator,
        training_lib.TrainSpec(_input_fn(24, 1, num_epochs=None), max_steps=12, hooks=[notes]),
        training_lib.EvalSpec(
            _input_fn(20, 2), steps=None, exporters=exporter, start_delay_secs=0, throttle_secs=0
        ),
    )
    everything = estimator.predict(_input_fn(5, 3, with_labels=False))
    person = {"x": [[0.5]], "y": [[0.25]], "key": [[b"asked"]]}
    path = exports[0]
    return {
        "evaluation": _floats(evaluation),
        "exports": exporter.notes,
        "losses": notes.losses,
        "predictions": [{name: _plain(value) for name, value in sorted(one.items())} for one in everything],
        "with_key": _serve(path, "with_key", person),
        "predict": _serve(path, "predict", {name: person[name] for name in [*FEATURES, "key"]}),
    }


def _run_own(config):
    estimator = estimator_lib.Estimator(_own_model_fn, config=config, params={"optimizer": "RMSProp"})
    notes = StepNotes()
    estimator.train(_input_fn(24, 1, num_epochs=2), hooks=[notes])
    warm = estimator_lib.Estimator(
        _own_model_fn,
        model_dir=config.model_dir + "_warm",
        params={"optimizer": "Ftrl"},
        warm_start_from=estimator_lib.WarmStartSettings(config.model_dir, vars_to_warm_start=".*kernel"),
    )
    warm.train(_input_fn(24, 4), steps=2)
    return {
        "args": list(util.fn_args(_own_model_fn)),
        "evaluation": _floats(estimator.evaluate(_input_fn(20, 2))),
        "warm": _floats(warm.evaluate(_input_fn(20, 2), name="warm")),
        "losses": notes.losses,
        "kernel": estimator.get_variable_value("own/kernel").tolist(),
        "fields": list(model_fn_lib.EstimatorSpec._fields),
    }


def main():
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    shutil.rmtree("wrapped", ignore_errors=True)
    config = run_config_lib.RunConfig(
        model_dir=os.path.join("wrapped", "canned"), tf_random_seed=5, save_checkpoints_steps=4
    )
    spec = parsing_utils.classifier_parse_example_spec(_feature_columns(), "label", tf.int64)
    results = {
        "canned": _run_canned(config),
        "own": _run_own(config.replace(model_dir=os.path.join("wrapped", "own"))),
        "spec": sorted(spec),
        "config": [config.task_type == run_config_lib.TaskType.WORKER, config.is_chief],
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
