"""Conversion of the graph of one core to a compiler's input: the part for a step, and its variables."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1


def write(
    folder: pathlib.Path,
    graph: tf.Graph,
    feeds: Sequence[tf.Tensor],
    fetches: Sequence[Any],
    topology: str,
) -> None:
    """Writes the input of `compile_program`."""
    folder.mkdir()
    tensors = [fetch for fetch in fetches if tf.is_tensor(fetch)]
    targets = [fetch for fetch in fetches if not tf.is_tensor(fetch)]
    whole = graph.as_graph_def()
    for node in whole.node:
        node.attr.pop("_class", None)  # a colocation with nodes that may be removed
        node.device = ""
    names = [tensor.op.name for tensor in tensors] + [target.name for target in targets]
    part = tf1.graph_util.extract_sub_graph(_without_assertions(whole), names)
    feed_nodes = {tensor.op.name: tensor for tensor in feeds}
    used = [node.name for node in part.node if node.name in feed_nodes]
    handles = [node for node in part.node if node.op == "VarHandleOp"]
    description = {
        "topology": topology,
        "feeds": {name: _spec(feed_nodes[name]) for name in used},
        "variables": {node.name: _variable(node) for node in handles},
        "fetches": [tensor.name for tensor in tensors],
        "targets": [target.name for target in targets],
    }
    given = {*used, *description["variables"]}
    program = tf1.GraphDef(versions=part.versions, library=part.library)
    program.node.extend(node for node in part.node if node.name not in given)
    (folder / "graph.pb").write_bytes(program.SerializeToString())
    (folder / "description.json").write_text(json.dumps(description))


def _without_assertions(graph_def: Any) -> Any:
    """Returns the graph without its assertions: no core of a TPU stops a step for a bad value."""
    for node in graph_def.node:
        if node.op == "Assert":
            name = node.name
            node.Clear()
            node.name, node.op = name, "NoOp"
    return graph_def


def _spec(tensor: tf.Tensor) -> Mapping[str, Any]:
    return {"dtype": tensor.dtype.name, "shape": tensor.shape.as_list()}


def _variable(node: Any) -> Mapping[str, Any]:
    dtype = tf.dtypes.as_dtype(node.attr["dtype"].type)
    return {"dtype": dtype.name, "shape": tf.TensorShape(node.attr["shape"].shape).as_list()}
