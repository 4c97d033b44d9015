"""The part of a graph that a compiler is given, reading a compiled program, and a refusal."""

import json

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.tpu.check import compile_program
from estimator_core.tpu.check.check import write_program


def test_collectives_of_a_compiled_program():
    hlo = """
      %all-reduce.1 = (f32[32,64]{1,0:T(8,128)}, bf16[3]{0}) all-reduce(%a, %b), replica_groups={{0,1}}
      %all-reduce-start = f32[2]{0} all-reduce-start(%c), replica_groups={}
      %x = f32[2]{0} all-reduce-done(%all-reduce-start)
      %all-gather.2 = pred[5]{0} all-gather(%d), dimensions={0}
      %add.3 = f32[4]{0} add(%all-reduce.1, %e)
    """
    assert list(compile_program.collectives(hlo)) == [
        ("all-reduce", 4 * 32 * 64 + 2 * 3),
        ("all-reduce", 8),
        ("all-gather", 5),
    ]


def test_refused_operations_are_those_that_the_message_names():
    message = (
        "Detected unsupported operations when trying to compile graph f[] on XLA_CPU_JIT: PyFunc (No "
        "registered 'PyFunc' OpKernel for XLA_CPU_JIT devices compatible with node {{node a/PyFunc}})"
        "{{node a/PyFunc}}, AsString (No registered 'AsString' OpKernel for XLA_CPU_JIT devices "
        "compatible with node {{node b}})"
    )
    assert compile_program.refused_operations(message) == [["a/PyFunc", "PyFunc"], ["b", "AsString"]]
    assert compile_program.refused_operations("in {{node c/d}}") == [["c/d", None]]
    assert compile_program.refused_operations("out of memory") == []


def test_the_part_that_a_step_takes(graph, tmp_path):
    x, unused = (tf1.placeholder(tf.float32, [2, 3], "x"), tf1.placeholder(tf.int32, [], "unused"))
    weight = tf1.get_variable("weight", [3, 1], use_resource=True)
    with tf.control_dependencies([tf1.assert_positive(x)]):
        loss = tf.reduce_sum(x @ weight, name="loss")
    update = weight.assign(weight * 2.0, read_value=False)
    tf.strings.as_string(loss)
    write_program(tmp_path / "train", graph, [x, unused], [loss, update], "v5e:2x2")
    assert json.loads((tmp_path / "train" / "description.json").read_text()) == {
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
