"""Prints the content of a TPUEstimator's exports, for TPUs and for CPUs, as JSON.

It runs on tf.estimator 2.15 and here alike. serving_graph_program.json is its output there:

python tests/estimator_core/tpu/serving_graph_program.py > tests/estimator_core/tpu/serving_graph_program.json
"""

import collections
import json
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.protobuf import saved_model_pb2

_X = np.ones([8, 3], np.float32)
# Operations of a save and a restore, which differ between versions of TensorFlow.
_CASES = {
    "version 1": (1, {}),
    "version 1, a call on the host": (1, {"host": True}),
    "version 1, columns": (1, {"columns": True}),
    "version 1, classes and scores": (1, {"classes": True}),
    "version 2, on the TPU": (2, {"rewrite": True}),
    "version 2, on the CPU": (2, {}),
}


def seen_by(estimator_api, case):
    """Returns the export of a case, and the params that model_fn was given.

    Args:
        estimator_api: `tf.estimator`, or this package.
        case: A key of `_CASES`.
    """
    version, params = _CASES[case]
    found = []

    def model_fn(features, labels, mode, params):
        if mode == "infer":
            found.append({key: params[key] for key in ("use_tpu", "batch_size") if key in params})

        def logits_of(x):
            if params.get("columns"):
                column = tf.feature_column.numeric_column("x", shape=(3,))
                x = tf1.feature_column.input_layer({"x": x}, [column])
            return tf.matmul(x, tf1.get_variable("weights", [3, 1], initializer=tf1.ones_initializer()))

        if params["use_tpu"] and params.get("rewrite"):
            logits = tf1.tpu.rewrite(logits_of, [features["x"]])[0]
        else:
            logits = logits_of(features["x"])
        api = estimator_api.tpu if hasattr(estimator_api, "tpu") else tf1.estimator.tpu
        if mode != "infer":
            loss = tf.reduce_mean((logits - labels) ** 2)
            train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
            return api.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
        export = estimator_api.export
        outputs = {"serving_default": export.PredictOutput({"logits": logits})}
        if params.get("classes"):
            outputs["scores"] = export.ClassificationOutput(scores=tf.sigmoid(logits))
            outputs["value"] = export.RegressionOutput(logits)
        if params.get("host"):

            def host_call(logits):
                outputs["classes"] = export.ClassificationOutput(classes=tf.strings.as_string(logits))

            tf1.tpu.outside_compilation(host_call, logits)
        return api.TPUEstimatorSpec(mode, predictions={"logits": logits}, export_outputs=outputs)

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(({"x": _X}, np.ones([8, 1], np.float32)))
        return dataset.repeat().batch(params["batch_size"], drop_remainder=True)

    tpu = estimator_api.tpu if hasattr(estimator_api, "tpu") else tf1.estimator.tpu
    estimator = tpu.TPUEstimator(
        model_fn,
        tempfile.mkdtemp(),
        tpu.RunConfig(),
        params,
        use_tpu=False,
        train_batch_size=4,
        predict_batch_size=4,
        export_saved_model_api_version=version,
    ).train(input_fn, max_steps=2)
    receiver_fn = estimator_api.export.build_parsing_serving_input_receiver_fn(
        {"x": tf.io.FixedLenFeature([3], tf.float32)}
    )
    path = tf.compat.as_str(estimator.export_saved_model(tempfile.mkdtemp(), receiver_fn))
    model = saved_model_pb2.SavedModel()
    with open(os.path.join(path, "saved_model.pb"), "rb") as file:
        model.ParseFromString(file.read())
    return {"params": found, "graphs": [_described(graph) for graph in model.meta_graphs]}


def _described(meta_graph):
    graph = meta_graph.graph_def
    return {
        "tags": sorted(meta_graph.meta_info_def.tags),
        "signatures": {
            name: {
                "method": signature.method_name,
                "inputs": {key: info.name for key, info in sorted(signature.inputs.items())},
                "outputs": {
                    key: tf.as_dtype(info.dtype).name for key, info in sorted(signature.outputs.items())
                },
            }
            for name, signature in sorted(meta_graph.signature_def.items())
        },
        "operations": _counted(graph.node),
        "functions": [_counted(each.node_def) for each in graph.library.function],
        "outside compilation": sorted(
            node.op
            for each in graph.library.function
            for node in each.node_def
            if "_xla_outside_compilation" in node.attr
        ),
        "variables": sorted(node.name for node in graph.node if node.op == "VarHandleOp"),
    }


def _counted(nodes):
    return dict(sorted(collections.Counter(node.op for node in nodes).items()))


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    json.dump({case: seen_by(tf.estimator, case) for case in _CASES}, sys.stdout, indent=1)
