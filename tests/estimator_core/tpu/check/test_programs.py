"""The part of a graph that a compiler is given."""

import json

import tensorflow as tf

from estimator_core.tpu.check.check import write_program

tf1 = tf.compat.v1


def test_the_part_that_a_step_takes(tmp_path):
    with tf.Graph().as_default() as graph:
        x, unused = (tf1.placeholder(tf.float32, [2, 3], "x"), tf1.placeholder(tf.int32, [], "unused"))
        weight = tf1.get_variable("weight", [3, 1], use_resource=True)
        with tf.control_dependencies([tf1.assert_positive(x)]):
            loss = tf.reduce_sum(x @ weight, name="loss")
        update = weight.assign(weight * 2.0, read_value=False)
        tf.strings.as_string(loss)
    write_program(tmp_path / "train", graph, [x, unused], [loss, update], "v5e:2x2")
    description = json.loads((tmp_path / "train" / "description.json").read_text())
    assert description == {
        "topology": "v5e:2x2",
        "feeds": {"x": {"dtype": "float32", "shape": [2, 3]}},
        "variables": {"weight": {"dtype": "float32", "shape": [3, 1]}},
        "fetches": ["loss:0"],
        "targets": [update.name],
    }
    graph_def = tf1.GraphDef.FromString((tmp_path / "train" / "graph.pb").read_bytes())
    kinds = {node.op for node in graph_def.node}
    assert kinds.isdisjoint({"VarHandleOp", "Placeholder", "AsString", "Assert"})
    assert {"MatMul", "AssignVariableOp"} <= kinds
