"""TPUContext: the object in `params["context"]` of input_fn and model_fn on shards."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

_BOARD = (2, 2, 1, 2)
_SHAPES = {
    1: (1, 1, 1, 1),
    2: (1, 1, 1, 2),
    4: (1, 2, 1, 2),
    8: (2, 2, 1, 2),
    16: (4, 2, 1, 2),
    32: (4, 4, 1, 2),
    64: (8, 4, 1, 2),
    128: (8, 8, 1, 2),
}
"""Dict of a model copy's number of cores to its part of the grid of chips: x, y, z, core of a chip."""


class TPUContext:
    """The place of a function among shards. There is one host, this machine.

    `invocation`: number of this call of input_fn, from 0; None in model_fn.
    `num_cores_per_replica`: cores of a copy of the model; None if it is not set.

    Source: `tf.compat.v1.estimator.tpu`'s `TPUContext`.
    """

    num_hosts = 1

    def __init__(
        self,
        num_replicas: int,
        invocation: int | None = None,
        num_invocations: int = 1,
        num_cores_per_replica: int | None = None,
    ):
        self.num_replicas = num_replicas
        self._invocation = invocation
        self._num_invocations = num_invocations
        self._num_cores_per_replica = num_cores_per_replica

    @property
    def num_of_replicas_per_host(self) -> int:
        """Copies of the model on a host."""
        if self._num_cores_per_replica is not None:
            raise ValueError(
                "num_of_replicas_per_host is for models without num_cores_per_replica. Received: "
                f"num_cores_per_replica={self._num_cores_per_replica}"
            )
        return self.num_replicas

    @property
    def device_assignment(self) -> Any:
        """`tf.tpu.experimental.DeviceAssignment` of the copies; None without `num_cores_per_replica`."""
        if self._invocation is not None:
            raise RuntimeError("params['context'].device_assignment is for model_fn. Received: input_fn")
        return self._assignment()

    @property
    def current_host(self) -> int:
        """Number of the host that calls input_fn."""
        self._check_in_input_fn("current_host")
        return 0

    def current_input_fn_deployment(self) -> tuple[str, int | None, int, int]:
        """Returns the device, the number of this call, all calls, and the replicas that this call feeds."""
        self._check_in_input_fn("current_input_fn_deployment")
        fed = self.num_replicas // self._num_invocations
        return "/device:CPU:0", self._invocation, self._num_invocations, fed

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """Returns the device of the host, and the number of the first core, of a copy of the model."""
        assignment = self._assignment()
        if assignment is None:
            return "/device:CPU:0", replica_id
        return "/device:CPU:0", int(assignment.tpu_ordinal(replica=replica_id))

    @property
    def tpu_host_placement_function(self) -> Callable[..., str]:
        """Function from the number of a host, or of a replica, to the device of the host."""

        def device_of_host(replica_id: int | None = None, host_id: int | None = None) -> str:
            del replica_id, host_id  # there is one host
            return "/device:CPU:0"

        return device_of_host

    def _assignment(self) -> Any:
        if self._num_cores_per_replica is None:
            return None
        shape = _SHAPES[self._num_cores_per_replica]
        is_board = self.num_replicas * self._num_cores_per_replica == np.prod(_BOARD)
        mesh = _BOARD if is_board else (shape[0] * self.num_replicas, *shape[1:])
        grid = itertools.product(*(range(mesh[axis]) for axis in (2, 1, 0, 3)))
        coordinates = np.array([[(x, y, z, core) for z, y, x, core in grid]])
        topology = tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=coordinates)
        return tf.tpu.experimental.DeviceAssignment.build(
            topology, computation_shape=shape, num_replicas=self.num_replicas
        )

    def _check_in_input_fn(self, name: str) -> None:
        if self._invocation is None:
            raise RuntimeError(f"params['context'].{name} is for input_fn. Received: model_fn")
