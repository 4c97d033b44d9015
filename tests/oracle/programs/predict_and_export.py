"""evaluate, predict and the exports: arguments, files on disk, and errors."""

import itertools
import os

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tests.oracle import observe
from tests.oracle.programs import small
from tests.oracle.programs.program import Scenario

tf1 = tf.compat.v1


def _trained(e, model_dir):
    config = e.RunConfig(model_dir=model_dir, save_checkpoints_steps=3)
    estimator = e.Estimator(small.line_model_fn(e), config=config)
    return estimator.train(small.train_input_fn, steps=6)


def evaluate(e, model_dir):
    config = e.RunConfig(model_dir=model_dir, save_checkpoints_steps=3)
    estimator = e.Estimator(small.line_model_fn(e), config=config)
    untrained = estimator.evaluate(small.eval_input_fn, name="untrained")
    estimator.train(small.train_input_fn, steps=6)
    first = os.path.join(model_dir, "model.ckpt-3")
    metrics = {
        "untrained": untrained,
        "newest": estimator.evaluate(small.eval_input_fn),
        "two_batches": estimator.evaluate(small.eval_input_fn, steps=2, name="two batches"),
        "first": estimator.evaluate(small.eval_input_fn, checkpoint_path=first, name="first"),
        "endless": estimator.evaluate(small.train_input_fn, steps=9, name=""),
    }
    summaries = {
        directory: [
            [event.step, value.tag, value.WhichOneof("value")]
            for event in observe.events_of(os.path.join(model_dir, directory))
            for value in event.summary.value
        ]
        for directory in small.files_in(model_dir)
        if directory.startswith("eval")
    }
    return {
        "metrics": small.plain(metrics),
        "types": {key: type(value).__name__ for key, value in metrics["newest"].items()},
        "summaries": {
            name: sorted([step, tag.replace(model_dir, "MODEL_DIR"), kind] for step, tag, kind in rows)
            for name, rows in summaries.items()
        },
        "eval_dir": [os.path.basename(estimator.eval_dir(name)) for name in (None, "", "test")],
        "errors": {
            "no_steps": small.error_of(estimator.evaluate, small.eval_input_fn, steps=0),
            "negative_steps": small.error_of(estimator.evaluate, small.eval_input_fn, steps=-1),
            "missing_checkpoint": small.error_of(
                estimator.evaluate, small.eval_input_fn, checkpoint_path=f"{model_dir}/nothing"
            ),
            "hook": small.error_of(estimator.evaluate, small.eval_input_fn, hooks=["hook"]),
        },
    }


def predict(e, model_dir):
    estimator = _trained(e, model_dir)
    first = os.path.join(model_dir, "model.ckpt-3")

    def rows(count=2, **arguments):
        results = estimator.predict(small.eval_input_fn, **arguments)
        return [small.plain(row) for row in itertools.islice(results, count)]

    def tensor_model_fn(features, labels, mode):
        del labels
        step = tf1.train.get_or_create_global_step()
        value = 2.0 * features["size"] + tf.cast(step, tf.float32)
        return e.EstimatorSpec(mode, predictions=value)

    def uneven_model_fn(features, labels, mode):
        del labels
        tf1.train.get_or_create_global_step()
        predictions = {"all": features["size"], "first": features["size"][:3]}
        return e.EstimatorSpec(mode, predictions=predictions)

    tensor = e.Estimator(tensor_model_fn, model_dir=os.path.join(model_dir, "tensor"))
    uneven = e.Estimator(uneven_model_fn, model_dir=os.path.join(model_dir, "uneven"))
    return {
        "all": rows(),
        "one_key": rows(predict_keys="value"),
        "keys": rows(predict_keys=["double", "unknown"]),
        "batches": rows(yield_single_examples=False),
        "first": rows(checkpoint_path=first),
        "number": len(rows(1000)),
        "tensor": [small.plain(row) for row in tensor.predict(small.eval_input_fn)][:3],
        "uneven": small.plain(next(uneven.predict(small.eval_input_fn, yield_single_examples=False))),
        "features_only": len(
            list(estimator.predict(lambda: tf.data.Dataset.from_tensors({"size": [1.0, 2.0]})))
        ),
        "errors": {
            "unknown_key": small.error_of(rows, predict_keys="unknown"),
            "keys_of_tensor": small.error_of(
                lambda: next(tensor.predict(small.eval_input_fn, predict_keys="value"))
            ),
            "uneven": small.error_of(lambda: next(uneven.predict(small.eval_input_fn))),
            "missing_checkpoint": small.error_of(rows, checkpoint_path=f"{model_dir}/nothing"),
        },
    }


def _tree(export_dir):
    return sorted(
        os.path.relpath(os.path.join(directory, name), export_dir)
        for directory, _, names in os.walk(export_dir)
        for name in names
    )


def _graphs(export_dir):
    """Returns tags and signature names of each graph of a SavedModel."""
    proto = saved_model_pb2.SavedModel()
    with open(os.path.join(export_dir, "saved_model.pb"), "rb") as file:
        proto.ParseFromString(file.read())
    return [
        {
            "tags": list(graph.meta_info_def.tags),
            "signatures": sorted(graph.signature_def),
            "outputs": {name: sorted(signature.outputs) for name, signature in graph.signature_def.items()},
        }
        for graph in proto.meta_graphs
    ]


def export(e, model_dir):
    estimator = _trained(e, model_dir)
    base = os.path.join(model_dir, "export")
    notes = os.path.join(model_dir, "notes.txt")
    with open(notes, "w") as file:
        file.write("for the export\n")

    def receiver():
        sizes = tf1.placeholder(tf.float32, [None], name="sizes")
        doubled = 2.0 * sizes
        return e.export.ServingInputReceiver(
            {"size": doubled / 2.0}, {"size": sizes}, {"twice": {"doubled": doubled}}
        )

    plain_dir = os.fsdecode(estimator.export_saved_model(base, receiver))
    text_dir = os.fsdecode(
        estimator.export_saved_model(base, receiver, assets_extra={"more/notes.txt": notes}, as_text=True)
    )
    first_dir = os.fsdecode(
        estimator.export_saved_model(base, receiver, checkpoint_path=os.path.join(model_dir, "model.ckpt-3"))
    )
    loaded = tf.saved_model.load(plain_dir)
    served = loaded.signatures["serving_default"](tf.constant([1.0, -2.0]))
    steps = [
        int(tf.train.load_checkpoint(f"{path}/variables/variables").get_tensor("global_step"))
        for path in (plain_dir, text_dir, first_dir)
    ]
    untrained = e.Estimator(small.line_model_fn(e), model_dir=os.path.join(model_dir, "untrained"))
    twice = loaded.signatures["twice:serving_default"](tf.constant([2.0, -4.0]))
    return {
        "files": _tree(plain_dir),
        "text_files": _tree(text_dir),
        "graphs": _graphs(plain_dir),
        "signatures": observe.signatures_of(plain_dir),
        "served": small.plain({name: value.numpy() for name, value in served.items()}),
        "served_twice": small.plain({name: value.numpy() for name, value in twice.items()}),
        "steps": steps,
        "timestamps": [os.path.basename(path).isdigit() for path in (plain_dir, text_dir)],
        "errors": {
            "untrained": small.error_of(untrained.export_saved_model, base, receiver),
            "no_receiver": small.error_of(estimator.export_saved_model, base, None),
            "other_mode": small.error_of(
                estimator.export_saved_model, base, receiver, experimental_mode="other"
            ),
        },
    }


def arguments(e, model_dir):
    """Constructors and train: the refused arguments, and the errors."""
    estimator = e.Estimator(small.line_model_fn(e), model_dir=model_dir)

    def without_features(labels, mode):
        del labels, mode

    def without_params(features, labels, mode):
        del features, labels, mode

    def returning(value):
        def model_fn(features, labels, mode):
            del features, labels, mode
            return value

        return e.Estimator(model_fn, model_dir=os.path.join(model_dir, "returning"))

    other_dir = e.RunConfig(model_dir=os.path.join(model_dir, "other"))
    train = small.train_input_fn
    errors = {
        "steps_and_max_steps": (estimator.train, (train,), {"steps": 1, "max_steps": 2}),
        "no_steps": (estimator.train, (train,), {"steps": 0}),
        "negative_max_steps": (estimator.train, (train,), {"max_steps": -1}),
        "no_spec": (returning(7).train, (train,), {"steps": 1}),
        "no_model_fn": (e.Estimator, (None,), {}),
        "without_features": (e.Estimator, (without_features,), {}),
        "without_params": (e.Estimator, (without_params,), {"params": {"x": 1}}),
        "two_model_dirs": (e.Estimator, (without_params,), {"model_dir": model_dir, "config": other_dir}),
        "config": (e.Estimator, (without_params,), {"config": 7}),
        "variable_untrained": (estimator.get_variable_value, ("slope",), {}),
        "names_untrained": (estimator.get_variable_names, (), {}),
        "spec_without_mode": (e.EstimatorSpec, ("train",), {}),
        "spec_eval_without_loss": (e.EstimatorSpec, (e.ModeKeys.EVAL,), {"predictions": {}}),
        "spec_hooks": (
            e.EstimatorSpec,
            (e.ModeKeys.TRAIN,),
            {"loss": 1.0, "train_op": 2.0, "training_hooks": [3]},
        ),
        "train_spec_input_fn": (e.TrainSpec, (7,), {}),
        "train_spec_max_steps": (e.TrainSpec, (train,), {"max_steps": 0}),
        "train_spec_hooks": (e.TrainSpec, (train,), {"hooks": [7]}),
        "eval_spec_steps": (e.EvalSpec, (train,), {"steps": 0}),
        "eval_spec_throttle": (e.EvalSpec, (train,), {"throttle_secs": -1}),
        "eval_spec_exporters": (e.EvalSpec, (train,), {"exporters": [7]}),
        "run_config_two_intervals": (
            e.RunConfig,
            (),
            {"save_checkpoints_steps": 1, "save_checkpoints_secs": 1},
        ),
        "run_config_negative": (e.RunConfig, (), {"save_summary_steps": -1}),
        "run_config_seed": (e.RunConfig, (), {"tf_random_seed": 1.5}),
        "run_config_session": (e.RunConfig, (), {"session_config": 7}),
        "run_config_device_fn": (e.RunConfig, (), {"device_fn": 7}),
        "run_config_model_dir": (e.RunConfig, (), {"model_dir": ""}),
        "run_config_keep": (e.RunConfig, (), {"keep_checkpoint_max": -1}),
        "run_config_hours": (e.RunConfig, (), {"keep_checkpoint_every_n_hours": 0}),
        "run_config_log_steps": (e.RunConfig, (), {"log_step_count_steps": -1}),
        "run_config_replace": (e.RunConfig().replace, (), {"num_ps_replicas": 2}),
        "exporter_keep": (e.LatestExporter, ("latest", small.receiver_fn(e)), {"exports_to_keep": 0}),
        "best_exporter_compare": (
            e.BestExporter,
            ("best", small.receiver_fn(e)),
            {"compare_fn": lambda a, b: True},
        ),
    }
    return {
        name: small.error_of(function, *args, **kwargs) for name, (function, args, kwargs) in errors.items()
    }


SCENARIOS = {
    f"estimator_{function.__name__}": Scenario(function)
    for function in (evaluate, predict, export, arguments)
}
