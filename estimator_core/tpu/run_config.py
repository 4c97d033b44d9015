"""RunConfig of a TPUEstimator."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import tensorflow as tf

from estimator_core import run_config, tf1
from estimator_core.cluster import EVALUATOR
from estimator_core.tpu.sharding import ShardedModes
from estimator_core.tpu.tpu_config import TPUConfig


@dataclasses.dataclass(eq=False, init=False)
class RunConfig(run_config.RunConfig):
    """A `RunConfig` with TPU settings. They are read-only; `replace` returns a changed copy.

    Example:
        >>> config = RunConfig(TPUConfig(iterations_per_loop=100), model_dir="model")
        >>> config.tpu_config.iterations_per_loop
        100

    Args:
        tpu_config: `TPUConfig`; None takes the defaults.
        evaluation_master: Address of the session that evaluation opens; None takes that of TF_CONFIG, or
            else, unless this task is an evaluator, `master`.
        master: Address of the session that training opens; None takes that of `cluster` or of
            TF_CONFIG, or else this process.
        cluster: `tf.distribute.cluster_resolver.ClusterResolver` of the TPU; or None.
        **kwargs: Settings of `estimator_core.RunConfig`.

    Raises:
        ValueError: Both `master` and `cluster` are given, or a setting is out of range.

    Source: `tf.compat.v1.estimator.tpu.RunConfig`.
    """

    tpu_config: TPUConfig = dataclasses.field(init=False)
    _resolver: Any = dataclasses.field(init=False, repr=False)
    _given_master: str | None = dataclasses.field(init=False, repr=False)
    _given_evaluation_master: str | None = dataclasses.field(init=False, repr=False)
    _sharded_modes: ShardedModes | None = dataclasses.field(init=False, repr=False)

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if cluster is not None and master is not None:
            raise ValueError(
                f"Both master and cluster are set; leave one out. Received: master={master!r}, "
                f"cluster={cluster!r}"
            )
        self._set("tpu_config", tpu_config or TPUConfig())
        self._set("_resolver", cluster)
        self._set("_given_master", master)
        self._set("_given_evaluation_master", evaluation_master)
        self._set("_sharded_modes", None)
        # the caller's; without the default device filters of RunConfig
        session_config = kwargs.get("session_config")
        if cluster is not None:
            # Sessions see the whole cluster.
            default = tf1.ConfigProto(allow_soft_placement=True, isolate_session_state=True)
            session_config = copy.deepcopy(session_config) or default
            cluster_spec = cluster.cluster_spec()
            if cluster_spec:
                session_config.cluster_def.CopyFrom(cluster_spec.as_cluster_def())
        self._set("session_config", session_config)

    @property
    def cluster(self) -> Any:
        """The cluster resolver, or None."""
        return self._resolver

    @property
    def cluster_spec(self) -> tf.train.ClusterSpec:
        """The cluster of the resolver, or else of TF_CONFIG."""
        return super().cluster_spec if self._resolver is None else self._resolver.cluster_spec()

    @property
    def master(self) -> str:
        """Address of the session that training opens; "" is in this process."""
        if self._given_master is not None:
            return self._given_master
        return super().master if self._resolver is None else self._resolver.master()

    @property
    def evaluation_master(self) -> str:
        """Address of the session that evaluation opens; "" is in this process."""
        if self._given_evaluation_master is not None:
            return self._given_evaluation_master
        if super().evaluation_master or self.task_type == EVALUATOR:
            return super().evaluation_master
        return self.master

    def with_shards(self, sharded_modes: ShardedModes) -> RunConfig:
        """Returns a copy for a TPUEstimator that runs these modes on shards."""
        changed = self.replace()
        object.__setattr__(changed, "_sharded_modes", sharded_modes)
        return changed

    def sharding(self, mode: str) -> Any:
        """Returns the `execution.sharded.Sharding` of a mode; None for no sharding."""
        modes = self._sharded_modes
        return None if modes is None else modes.sharding(mode, self.tpu_config)

    def replace(self, **changes: Any) -> RunConfig:
        """Returns a copy with `changes`, of `tpu_config` or the settings of `estimator_core.RunConfig`.

        Raises:
            ValueError: A setting is unknown, or a value is invalid.
        """
        tpu_config = changes.pop("tpu_config", self.tpu_config)
        changed: Any = super().replace(**changes)
        object.__setattr__(changed, "tpu_config", tpu_config)
        return changed
