import collections

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.tpu.serving_graph import partitioned_call


def test_variables_stay_outside_and_can_be_shared():
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [None, 3])

        def computation():
            with tf1.variable_scope("layer", reuse=tf1.AUTO_REUSE):
                first, again = (
                    tf1.get_variable("kernel", [3, 2], initializer=tf1.ones_initializer()) for _ in range(2)
                )
                own = tf.Variable([1.0, 2.0], name="bias")
            assert first is again
            return [x @ first + own, tf.reduce_sum(x)]

        result, total = partitioned_call(computation)
        assert tf1.get_variable("outside", [], initializer=tf1.zeros_initializer()).graph is graph
        assert [variable.name for variable in tf1.global_variables()] == [
            "layer/kernel:0", "layer/bias:0", "outside:0",
        ]  # fmt: skip
        assert (result.shape.as_list(), total.shape.as_list()) == ([None, 2], [])
        nodes = graph.as_graph_def()
    # The initialization of the variables needs no TPU.
    with tf.Graph().as_default(), tf1.Session() as session:
        keep = [node for node in nodes.node if not node.op.startswith("TPU")]
        tf.graph_util.import_graph_def(tf1.GraphDef(node=keep, versions=nodes.versions), name="")
        session.run(["layer/kernel/Assign", "layer/bias/Assign"])
        np.testing.assert_array_equal(session.run("layer/bias/Read/ReadVariableOp:0"), [1.0, 2.0])
    (function,) = nodes.library.function
    inside = collections.Counter(node.op for node in function.node_def)
    assert (inside["MatMul"], inside["VarHandleOp"], inside["TPUReplicateMetadata"]) == (1, 0, 1)
    assert len(function.signature.input_arg) == 3


def test_two_calls_are_two_functions(graph):
    for factor in (2.0, 3.0):
        partitioned_call(lambda factor=factor: [tf.constant(1.0) * factor])
    assert len(graph.as_graph_def().library.function) == 2
