"""Compilation of the graph of one core for a TPU, in a separate process.

Usage: python -m estimator_core.tpu.check.compile_program FOLDER ...

It reads the files of `check.write_program` in each folder, and prints a JSON object for it, on one line.
It is separate from the user's process because a compiler may end its process, and because TensorFlow
makes StableHLO only from eager functions, which `tf.compat.v1.disable_v2_behavior` disables for good.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

_UNSUPPORTED = re.compile(r"(\w+) \(No registered '\w+' OpKernel[^{]*\{\{node ([^}]+)\}\}\)")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_COLLECTIVE = re.compile(
    r"= (?P<shapes>.+?) (?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)"
    r"(?:-start)?\("
)
_SHAPE = re.compile(r"\b(pred|[a-z]+\d+)\[([\d,]*)\]")


class NotCompiledError(Exception):
    """The program can't be compiled."""

    def __init__(self, stage: str, message: str):
        super().__init__(message)
        self.stage = stage


def to_stablehlo(folder: pathlib.Path, description: Mapping[str, Any]) -> str:
    """Returns the program of the graph in the folder as StableHLO.

    `description`: dict of "feeds" and "variables": name to dtype and shape; "fetches": names of tensors;
    "targets": names of operations that run, too.
    """
    import tensorflow as tf

    from estimator_core import tf1

    graph_def = tf1.GraphDef.FromString((folder / "graph.pb").read_bytes())
    for function in graph_def.library.function:  # XLA looks up loops and branches there
        tf1.define_function(function)
    variables = {
        name: tf.Variable(tf.zeros(spec["shape"], spec["dtype"]), shape=spec["shape"], name=name)
        for name, spec in description["variables"].items()
    }
    feeds = description["feeds"]
    signature = [tf.TensorSpec(spec["shape"], spec["dtype"]) for spec in feeds.values()]

    @tf.function(jit_compile=True, autograph=False, input_signature=signature)
    def program(*values: Any) -> Any:
        graph = tf1.get_default_graph()
        inputs = dict(zip((f"{name}:0" for name in feeds), values, strict=True))
        for name, variable in variables.items():
            inputs[f"{name}:0"] = graph.capture(variable.handle)
        fetched = tf.graph_util.import_graph_def(
            graph_def,
            input_map=inputs,
            return_elements=[*description["fetches"], *description["targets"]],
            name="",
        )
        count = len(description["fetches"])
        with tf.control_dependencies(fetched[count:]):
            return [tf.identity(value) for value in fetched[:count]]

    try:
        arguments = [tf.zeros(spec.shape, spec.dtype) for spec in signature]
        return program.experimental_get_compiler_ir(*arguments)(stage="stablehlo")
    except (tf.errors.OpError, ValueError, TypeError) as error:
        raise NotCompiledError("graph", str(error)) from error


def compiled(hlo: str, topology: str) -> Any:
    """Returns the executable of a program for all cores of a topology, and the cores as devices."""
    os.environ.update(
        TPU_SKIP_MDS_QUERY="1",
        TPU_WORKER_HOSTNAMES="localhost",
        TPU_WORKER_ID="0",
        TPU_ACCELERATOR_TYPE="v5litepod-8",
        JAX_PLATFORMS="cpu",
        # Several processes may compile at the same time, since nothing runs on a TPU.
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    )
    import jax
    import numpy as np
    from jax.experimental import topologies
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    x, y, *z = (int(size) for size in topology.split(":")[1].split("x"))
    devices = topologies.get_topology_desc(
        platform="tpu", topology_name=topology, chips_per_host_bounds=(x, y, *(z or [1]))
    ).devices
    options = xla_client.CompileOptions()
    options.num_replicas = len(devices)
    options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(len(devices)).reshape(-1, 1))
    # The client does not support the copy of TensorFlow's dialect; a reshape to the same shape copies, too.
    hlo = re.sub(r"mhlo\.copy (%\S+) : (tensor<[^>]*>)", r"stablehlo.reshape \1 : (\2) -> \2", hlo)
    from jax._src.interpreters import mlir

    context = mlir.make_ir_context()
    with context:
        module = ir.Module.parse(hlo)
    try:
        executable = devices[0].client.compile(
            module, executable_devices=xla_client.DeviceList(tuple(devices)), compile_options=options
        )
    except jax.errors.JaxRuntimeError as error:
        raise NotCompiledError("compiler", str(error)) from error
    return executable, devices


def refused_operations(message: str) -> list[list[str | None]]:
    """Returns the name and, if known, the type of each operation in an error."""
    operations: list[list[str | None]] = [[node, kind] for kind, node in _UNSUPPORTED.findall(message)]
    return operations or [[node, None] for node in _NODE.findall(message)]


def collectives(hlo: str) -> Iterator[tuple[str, int]]:
    """Yields the kind and the bytes, on one core, of each collective operation in a compiled program."""
    for line in hlo.splitlines():
        match = _COLLECTIVE.search(line)
        if match:
            yield (match["kind"], sum(_num_bytes(*shape) for shape in _SHAPE.findall(match["shapes"])))


def _num_bytes(dtype: str, shape: str) -> int:
    bits = 8 if dtype == "pred" else int(re.sub(r"\D", "", dtype))
    count = 1
    for size in filter(None, shape.split(",")):
        count *= int(size)
    return count * bits // 8


def result(folder: pathlib.Path) -> dict[str, Any]:
    """Returns the JSON object to print: the needs of the compiled program, or the error."""
    description = json.loads((folder / "description.json").read_text())
    try:
        text = to_stablehlo(folder, description)
        start = time.monotonic()
        executable, devices = compiled(text, description["topology"])
    except NotCompiledError as error:
        operations = refused_operations(str(error))
        return {"stage": error.stage, "error": str(error), "operations": operations}
    memory = executable.get_compiled_memory_stats()
    costs = executable.cost_analysis()
    hlo = "\n".join(module.to_string() for module in executable.hlo_modules())
    return {
        "compile_secs": time.monotonic() - start,
        "num_cores": len(devices),
        "device_kind": devices[0].device_kind,
        "memory": {
            "arguments": memory.argument_size_in_bytes,
            "outputs": memory.output_size_in_bytes,
            "aliases": memory.alias_size_in_bytes,
            "temporaries": memory.temp_size_in_bytes,
            "code": memory.generated_code_size_in_bytes,
        },
        "flops": costs.get("flops") or 0.0,
        "bytes_accessed": costs.get("bytes accessed") or 0.0,
        "collectives": list(collectives(hlo)),
    }


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(result(pathlib.Path(name))), flush=True)
