"""The cores of one copy of a model: device names that all mean the same virtual shard."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

_CORE = "TPU_REPLICATED_CORE"


def place_on_shard(operations: Sequence[tf.Operation], num_cores: int) -> None:
    """Places operations on their shard, regardless of the core given by `tf.compat.v1.tpu.core`.

    Operations within functions keep their core; sessions move them, as with any other device that does not
    exist.
    """
    for operation in operations:
        if _CORE in operation.device:
            _check(operation.device, num_cores, operation.name)
            here = tf.DeviceSpec.from_string(operation.device).replace(
                device_type=None, device_index=None
            )
            # TensorFlow has no public way to change the device of an operation.
            operation._set_device(here)  # noqa: SLF001
    if operations:
        for function in operations[0].graph.as_graph_def().library.function:
            for node in function.node_def:
                if _CORE in node.device:
                    _check(node.device, num_cores, f"{function.signature.name}/{node.name}")


def _check(device: str, num_cores: int, name: str) -> None:
    core = tf.DeviceSpec.from_string(device).device_index
    if core >= num_cores:
        raise ValueError(
            f"A copy of the model has the cores 0 to {num_cores - 1}: set TPUConfig's num_cores_per_replica, "
            f"or use another core in tf.compat.v1.tpu.core. Received: tpu.core({core}) for operation "
            f"{name!r}, num_cores_per_replica={num_cores}"
        )
