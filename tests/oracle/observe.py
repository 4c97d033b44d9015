"""The observation that is compared: everything that a run of a program shows to its user, as plain data."""

import glob
import itertools
import os

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.core.util import event_pb2

from tests.oracle.programs.program import STEPS


def events_of(directory):
    """Returns the events of a directory's event files, in order."""
    for path in sorted(glob.glob(os.path.join(directory, "events*"))):
        for record in tf.compat.v1.io.tf_record_iterator(path):
            yield event_pb2.Event.FromString(record)


def losses_of(model_dir):
    """Returns the training loss of each step, from the summaries of every step.

    In the graph of a Keras model "loss" is a scope of the model's, and the Estimator's tag is "loss_1".
    """
    losses = {}
    for event in events_of(model_dir):
        for value in event.summary.value:
            if value.tag in ("loss", "loss_1"):
                losses[event.step] = float(value.simple_value)
    return [losses[step] for step in sorted(losses)]


def tags_of(model_dir):
    """Returns the summary tags of training, with the kind of each; rates depend on the clock."""
    tags = {}
    for event in events_of(model_dir):
        for value in event.summary.value:
            tags[value.tag] = value.WhichOneof("value")
    tags.pop("global_step/sec", None)
    return tags


def signatures_of(export_dir):
    """Returns method, inputs and outputs (dtype and shape) of each signature."""
    proto = saved_model_pb2.SavedModel()
    with open(os.path.join(export_dir, "saved_model.pb"), "rb") as file:
        proto.ParseFromString(file.read())

    def tensors(infos):
        return {
            name: [info.dtype, [dim.size for dim in info.tensor_shape.dim]]
            for name, info in sorted(infos.items())
        }

    return {
        name: {
            "method": signature.method_name,
            "inputs": tensors(signature.inputs),
            "outputs": tensors(signature.outputs),
        }
        for name, signature in sorted(proto.meta_graphs[0].signature_def.items())
    }


def as_json(array):
    """Returns an array as plain data; strings as text, a constant array as its one value."""
    array = np.asarray(array)
    if array.dtype.kind in "OS":
        return [x.decode() if isinstance(x, bytes) else x for x in array.ravel().tolist()]
    flat = array.ravel()
    if flat.size > 1 and np.all(flat == flat[0]):
        flat = flat[:1]
    if array.dtype.kind == "f":
        return [float(f"{value:.9g}") for value in flat.tolist()]
    return flat.tolist()


def name_of(key):
    """Returns a prediction's key as text: with several heads it is (head name, key)."""
    return key if isinstance(key, str) else "/".join(key)


def variables_of(checkpoint):
    """Returns the variables of a checkpoint by name."""
    reader = tf.train.load_checkpoint(checkpoint)
    return {
        name: {
            "shape": [int(size) for size in reader.get_variable_to_shape_map()[name]],
            "dtype": reader.get_variable_to_dtype_map()[name].name,
            "values": as_json(reader.get_tensor(name)),
        }
        for name in sorted(reader.get_variable_to_shape_map())
    }


def write_checkpoint(model_dir, variables):
    """Writes the reference's initial variables as a checkpoint to continue from."""
    names = sorted(variables)
    tensors = []
    for name in names:
        variable = variables[name]
        values = np.array(variable["values"], dtype=variable["dtype"])
        tensors.append(np.broadcast_to(values.reshape(-1), [np.prod(variable["shape"], dtype=int)]))
    prefix = os.path.join(model_dir, "model.ckpt-0")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:  # with any behaviour of TensorFlow
        session.run(
            tf.raw_ops.SaveV2(
                prefix=prefix,
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[
                    tf.constant(tensor.reshape(variables[name]["shape"]))
                    for name, tensor in zip(names, tensors, strict=True)
                ],
            )
        )
    tf.compat.v1.train.update_checkpoint_state(model_dir, prefix)


def signatures_after_export(e, estimator, serving_features):
    """Returns the signatures of an export that parses examples; None when there is no spec."""
    if serving_features is None:
        return None
    receiver_fn = e.export.build_parsing_serving_input_receiver_fn(serving_features)
    base = os.path.join(estimator.model_dir, "export")
    return signatures_of(os.fsdecode(estimator.export_saved_model(base, receiver_fn)))


def observe(e, estimator, program, hooks=()):
    """Trains, evaluates, predicts and exports; returns all that can be seen of it."""
    estimator.train(program.inputs(), steps=STEPS, hooks=list(hooks))
    metrics = estimator.evaluate(program.inputs(repeat=1))
    rows = itertools.islice(estimator.predict(program.inputs(repeat=1)), 3)
    predictions = [{name_of(key): as_json(value) for key, value in row.items()} for row in rows]
    return {
        "losses": losses_of(estimator.model_dir),
        "tags": tags_of(estimator.model_dir),
        "metrics": {key: float(value) for key, value in metrics.items()},
        "predictions": predictions,
        "signatures": signatures_after_export(e, estimator, program.serving_features),
        "final_norms": {
            name: float(f"{np.linalg.norm(estimator.get_variable_value(name)):.9g}")
            for name in sorted(estimator.get_variable_names())
        },
    }
