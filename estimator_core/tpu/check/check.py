"""check_for_tpu: checks that a model compiles for a TPU."""

from __future__ import annotations

import json
import linecache
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.one_core import OneCore
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn
from estimator_core.tpu.check.report import ModeReport, RefusedOperation, Report, Topology, topology_named
from estimator_core.tpu.tpu_estimator import TPUEstimator

_HERE = pathlib.Path(__file__).resolve()
_PACKAGE = _HERE.parents[2]


def check_for_tpu(
    estimator: TPUEstimator, input_fn: InputFn, topology: str = "v5e:2x2", modes: Iterable[str] | None = None
) -> Report:
    """Compiles the step of one core with the TPU's own compiler, and reports its needs. No TPU is needed.

    The compiler is `libtpu`'s; `pip install jax libtpu` installs it. model_fn and input_fn are called as on a
    TPU with the cores of `topology`, regardless of `use_tpu` and `num_shards`; each core takes a part of the
    batch sizes of `estimator`. Nothing is trained and no checkpoint read.

    Example:
        >>> report = check_for_tpu(tpu_estimator, input_fn, "v5e:2x2")  # doctest: +SKIP
        >>> report.compiles  # doctest: +SKIP
        True
        >>> print(report)  # doctest: +SKIP

    Args:
        estimator: TPUEstimator to check; `to_tpu_estimator` makes one of any Estimator.
        input_fn: See `TPUEstimator.train`.
        topology: TPU chips and their grid, such as "v5e:2x2" (4 cores) or "v4:2x2x1" (8 cores).
        modes: Modes of `ModeKeys`; None takes all that have a batch size and would run on a TPU.

    Returns:
        The report. It also contains compilation errors, which are not raised.

    Raises:
        TypeError: `estimator` is not a TPUEstimator.
        ValueError: The topology or a mode is unknown, or a batch size is not divisible by the cores.
        RuntimeError: The compiler is not installed, or the model needs several cores for each copy, or tables
            in the memory of a TPU, which can't be checked yet.
    """
    if not isinstance(estimator, TPUEstimator):
        raise TypeError(
            "estimator must be a TPUEstimator; estimator_core.tpu.to_tpu_estimator makes one of any "
            f"Estimator. Received: estimator={estimator!r}"
        )
    chips = topology_named(topology)
    sharded = estimator.with_shards(chips.num_cores)
    shardings = {mode: sharded.config.sharding(mode) for mode in ModeKeys.ALL if sharded.batch_sizes[mode]}
    on_tpu = [mode for mode, sharding in shardings.items() if sharding]
    modes = on_tpu if modes is None else list(dict.fromkeys(modes))
    for mode in modes:
        if mode not in on_tpu:
            raise ValueError(
                "A mode is checked if it has a batch size and would run on a TPU; with eval_on_tpu=False "
                f"evaluation would not. Those are {on_tpu}. Received: modes={modes}"
            )
    reports: dict[str, ModeReport] = {}
    graphs: dict[str, tf.Graph] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for mode in modes:
            execution = OneCore(shardings[mode])
            try:
                program = sharded.build_program(mode, input_fn, execution=execution)
            except ValueError as error:
                # Errors of the execution are about TPUs; all others are the user's.
                *_, last = traceback.walk_tb(error.__traceback__)
                file = pathlib.Path(last[0].f_code.co_filename)
                if not file.is_relative_to(_PACKAGE / "execution"):
                    raise
                reports[mode] = ModeReport(mode, chips, str(error))
                continue
            graphs[mode] = program.graph
            write_program(folder / mode, program.graph, execution.feeds, execution.fetches, topology)
        for mode, compiled in zip(graphs, _compiled(folder, list(graphs)), strict=True):
            reports[mode] = _report(mode, chips, graphs[mode], compiled)
    return Report({mode: reports[mode] for mode in modes})


def _report(mode: str, topology: Topology, graph: tf.Graph, compiled: Mapping[str, Any]) -> ModeReport:
    """Returns the report of a mode from the output of `compile_program`."""
    if "error" not in compiled:
        return ModeReport(
            mode,
            topology,
            memory=compiled["memory"],
            collectives=tuple((kind, size) for kind, size in compiled["collectives"]),
            flops=compiled["flops"],
            bytes_accessed=compiled["bytes_accessed"],
            compile_secs=compiled["compile_secs"],
        )
    operations = dict.fromkeys(_refused(graph, *item) for item in compiled["operations"])
    error = compiled["error"]
    if any(operation.type for operation in operations) and compiled["stage"] == "graph":
        error = (
            "A TPU has no such operation. Let input_fn do this, in Dataset.map, which runs on the host; or "
            "leave it out where params['use_tpu'] is True."
        )
    return ModeReport(mode, topology, error, tuple(operations))


def _compiled(folder: pathlib.Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the output of `compile_program` for each of the folders."""
    if not names:
        return []
    module = "estimator_core.tpu.check.compile_program"
    path = os.pathsep.join([str(_PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", module, *(str(folder / name) for name in names)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    results = [json.loads(line) for line in done.stdout.splitlines() if line.endswith("}")]
    if done.returncode == 0:
        return results
    if "No module named 'jax" in done.stderr or "No module named 'libtpu" in done.stderr:
        raise RuntimeError("The TPU's compiler is not installed: pip install jax libtpu")
    crash = f"The compiler ended with exit code {done.returncode}: {done.stderr[-2000:]}"
    results.append({"stage": "compiler", "error": crash, "operations": []})
    return results + _compiled(folder, names[len(results) :])


def _refused(graph: tf.Graph, name: str, kind: str | None) -> RefusedOperation:
    """Returns an operation, with the line of the user's code that made it."""
    try:
        operation = graph.get_operation_by_name(name)
    except KeyError:  # it is within a function
        return RefusedOperation(kind or "", name, "")
    libraries = [str(_PACKAGE), str(pathlib.Path(tf.__file__).parent)]
    for frame in reversed(operation.traceback):
        if not any(frame.filename.startswith(f"{folder}{os.sep}") for folder in libraries):
            where, line = frame.filename, linecache.getline(frame.filename, frame.lineno).strip()
            made_at = f"{where}:{frame.lineno}{': ' if line else ''}{line}"
            return RefusedOperation(operation.type, name, made_at)
    return RefusedOperation(operation.type, name, "")


def write_program(
    folder: pathlib.Path, graph: tf.Graph, feeds: Sequence[tf.Tensor], fetches: Sequence[Any], topology: str
) -> None:
    """Writes the input of `compile_program`."""
    folder.mkdir()
    tensors = [fetch for fetch in fetches if tf.is_tensor(fetch)]
    targets = [fetch for fetch in fetches if not tf.is_tensor(fetch)]
    whole = graph.as_graph_def()
    for node in whole.node:
        node.attr.pop("_class", None)  # a colocation with nodes that may be removed
        node.device = ""
        if node.op == "Assert":  # no core of a TPU stops a step for a bad value
            name = node.name
            node.Clear()
            node.name, node.op = name, "NoOp"
    names = [tensor.op.name for tensor in tensors] + [target.name for target in targets]
    part = tf1.graph_util.extract_sub_graph(whole, names)
    feed_nodes = {tensor.op.name: tensor for tensor in feeds}
    used = [node.name for node in part.node if node.name in feed_nodes]
    handles = [node for node in part.node if node.op == "VarHandleOp"]
    description = {
        "topology": topology,
        "feeds": {
            name: {"dtype": feed_nodes[name].dtype.name, "shape": feed_nodes[name].shape.as_list()}
            for name in used
        },
        "variables": {
            node.name: {
                "dtype": tf.dtypes.as_dtype(node.attr["dtype"].type).name,
                "shape": tf.TensorShape(node.attr["shape"].shape).as_list(),
            }
            for node in handles
        },
        "fetches": [tensor.name for tensor in tensors],
        "targets": [target.name for target in targets],
    }
    supplied = {*used, *description["variables"]}
    program = tf1.GraphDef(versions=part.versions, library=part.library)
    program.node.extend(node for node in part.node if node.name not in supplied)
    (folder / "graph.pb").write_bytes(program.SerializeToString())
    (folder / "description.json").write_text(json.dumps(description))
