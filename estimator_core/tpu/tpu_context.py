"""TPUContext: what input_fn and model_fn find in `params["context"]` when they run on shards."""

from __future__ import annotations

from typing import Any


class TPUContext:
    """Where a function runs. There is one host, this machine.

    Args:
        num_replicas: Copies of the model.
        invocation: Number of this call of input_fn, from 0; None in model_fn.
        num_invocations: Calls of input_fn.

    Source: `tf.compat.v1.estimator.tpu`'s `TPUContext`.
    """

    num_hosts = 1
    device_assignment: Any = None

    def __init__(self, num_replicas: int, invocation: int | None = None, num_invocations: int = 1):
        self.num_replicas = num_replicas
        self.num_of_replicas_per_host = num_replicas
        self._invocation = invocation
        self._num_invocations = num_invocations

    @property
    def current_host(self) -> int:
        """Number of the host that calls input_fn.

        Raises:
            RuntimeError: It is asked for in model_fn.
        """
        self._check_in_input_fn("current_host")
        return 0

    def current_input_fn_deployment(self) -> tuple[str, int | None, int, int]:
        """Returns the device, the number of this call, all calls, and the replicas that this one feeds.

        Raises:
            RuntimeError: It is asked for in model_fn.
        """
        self._check_in_input_fn("current_input_fn_deployment")
        fed = self.num_replicas // self._num_invocations
        return "/device:CPU:0", self._invocation, self._num_invocations, fed

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """Returns the device of the host, and the number of the core, of a copy of the model."""
        return "/device:CPU:0", replica_id

    def _check_in_input_fn(self, name: str) -> None:
        if self._invocation is None:
            raise RuntimeError(f"params['context'].{name} is for input_fn. Received: model_fn")
