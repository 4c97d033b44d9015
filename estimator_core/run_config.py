"""RunConfig: the settings of a run, apart from the model."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_core import cluster as cluster_lib
from estimator_core import tf1


class _UseDefault:
    def __repr__(self) -> str:
        return "<default>"


_USE_DEFAULT: Any = _UseDefault()
_DEFAULT_SAVE_CHECKPOINTS_SECS = 600

AUTO = "auto"
"""A setting of `RunConfig` that the Estimator chooses: `steps_per_session_run`, `jit_compile`."""


@dataclasses.dataclass(eq=False)
class RunConfig:
    """Settings of a run. They are read-only; `replace` returns a changed copy.

    The copy keeps the class of a subclass, and attributes that were added to the object.

    Example:
        >>> config = RunConfig(model_dir="model", save_checkpoints_steps=500)
        >>> config.replace(keep_checkpoint_max=2).keep_checkpoint_max
        2

    Args:
        model_dir: Directory of checkpoints, summaries and exports. None leaves it to the Estimator
            (or to `model_dir` in TF_CONFIG). May be on any file system of TensorFlow, and must not
            contain characters of glob patterns (asterisk, question mark, opening bracket, backslash).
        tf_random_seed: Seed of the graph; None draws one.
        save_summary_steps: Steps between two summaries; None writes none.
        save_checkpoints_steps: Steps between two checkpoints; None saves by time.
        save_checkpoints_secs: Seconds between two checkpoints, 600 if neither interval is given. If both
            are None, no checkpoints are saved.
        session_config: `ConfigProto`; None is soft placement, one grappler pass and, in a cluster,
            `device_filters`: a session of a task that trains reaches that task and the parameter
            servers, so that it lives on when another worker dies. In a cluster without a strategy this
            attribute holds that default; otherwise it stays None and `Estimator.config.session_config`
            has it.
        keep_checkpoint_max: Number of newest checkpoints to keep; None or 0 keeps all.
        keep_checkpoint_every_n_hours: Hours between checkpoints that are kept in addition; None keeps none.
        log_step_count_steps: Steps between two log lines of loss and steps per second; None logs none.
        train_distribute: `tf.distribute.Strategy` for training; None is a single device.
        device_fn: Function from an `Operation` to its device; None is TensorFlow's placement, and in a
            cluster variables on the parameter servers.
        protocol: Protocol of the server that `train_and_evaluate` starts for this task of a cluster;
            None is "grpc".
        eval_distribute: `tf.distribute.Strategy` for evaluation.
        experimental_distribute: Distribution settings for training and evaluation together.
        experimental_max_worker_delay_secs: Maximum seconds that a worker of a cluster waits before it
            begins to train: worker i waits 5 (i + 1) seconds, at most this; None is 60.
        session_creation_timeout_secs: Maximum seconds to wait for the other tasks of a cluster: for their
            servers, and, in a worker, for the chief to initialize the variables; None waits forever.
        checkpoint_save_graph_def: Writes `graph.pbtxt` and the `.meta` files if true.
        steps_per_session_run: Maximum number of training steps in one session call. It changes no result:
            a call ends at a step at which a hook is due. "auto" chooses the number that takes about
            0.2 seconds; 1 makes the steps one by one. A hook that does not declare its interval is called
            at every step, which makes it 1. Tasks of a cluster make one step a call. In an evaluation, it is
            the number of batches; any hook that is called around batches makes it 1.
        jit_compile: Compiles training steps at which no hook is called with XLA, as far as possible, if
            true. The results are the same to rounding. "auto" compiles those of many small operations, and
            logs its decision. True raises an error if nothing can be compiled. It is for training on
            one device, of 200 steps or more.

    Raises:
        ValueError: A value is out of range, or both checkpoint intervals are given.

    Source: `tf.estimator.RunConfig`.
    """

    model_dir: str | None = None
    tf_random_seed: int | None = None
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = _USE_DEFAULT
    save_checkpoints_secs: int | None = _USE_DEFAULT
    session_config: Any = None
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float | None = 10000
    log_step_count_steps: int | None = 100
    train_distribute: Any = None
    device_fn: Callable[[Any], str] | None = None
    protocol: str | None = None
    eval_distribute: Any = None
    experimental_distribute: Any = None
    experimental_max_worker_delay_secs: float | None = None
    session_creation_timeout_secs: float | None = 7200
    checkpoint_save_graph_def: bool = True
    steps_per_session_run: int | str = AUTO
    jit_compile: bool | str = False
    _cluster: cluster_lib.Cluster = dataclasses.field(
        default_factory=cluster_lib.from_environment, init=False, repr=False
    )

    def __post_init__(self) -> None:
        cluster = self._cluster
        has_default = _device_filters(cluster) and not (
            self.trains_by_strategy and cluster_lib.MASTER not in cluster.tasks
        )
        if self.session_config is None and has_default:
            self._set("session_config", _default_session_config(cluster))
        if self.model_dir is None:
            self._set("model_dir", cluster.model_dir)
        elif not str(self.model_dir):
            raise ValueError("model_dir must not be empty. Received: model_dir=''")
        else:
            self._set("model_dir", str(self.model_dir))
        if cluster.model_dir is not None and cluster.model_dir != self.model_dir:
            raise ValueError(
                "model_dir differs between RunConfig and TF_CONFIG. Received: "
                f"model_dir={self.model_dir!r}, TF_CONFIG's model_dir={cluster.model_dir!r}"
            )
        if self.model_dir is not None:
            check_path("model_dir", self.model_dir)
        self._settle_checkpoint_interval()
        if self.session_config is not None and not isinstance(self.session_config, tf1.ConfigProto):
            raise ValueError(f"session_config must be a ConfigProto. Received: {self.session_config!r}")
        for name in (
            "save_summary_steps",
            "save_checkpoints_steps",
            "save_checkpoints_secs",
            "keep_checkpoint_max",
            "log_step_count_steps",
            "experimental_max_worker_delay_secs",
        ):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must not be negative. Received: {name}={value}")
        if self.log_step_count_steps == 0:
            raise ValueError(
                "log_step_count_steps must be above 0, or None to log nothing. Received: "
                "log_step_count_steps=0"
            )
        steps = self.steps_per_session_run
        is_count = isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1
        if steps != AUTO and not is_count:
            raise ValueError(
                f"steps_per_session_run must be 'auto' or a whole number of 1 or more. Received: {steps!r}"
            )
        if not isinstance(self.jit_compile, bool) and self.jit_compile != AUTO:
            raise ValueError(f"jit_compile must be 'auto', True or False. Received: {self.jit_compile!r}")
        for name in ("keep_checkpoint_every_n_hours", "session_creation_timeout_secs"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0. Received: {name}={value}")
        for name in ("train_distribute", "eval_distribute"):
            both = getattr(self, name), getattr(self.experimental_distribute, name, None)
            if None not in both:
                raise ValueError(
                    f"{name} is set twice: as an argument, and in experimental_distribute; leave one "
                    f"out. Received: {name}={both[0]!r}, in experimental_distribute: {both[1]!r}"
                )
            if isinstance(both[0] or both[1], tf.distribute.ParameterServerStrategy):
                raise ValueError(
                    f"{name} can't be a tf.distribute.ParameterServerStrategy, which is for training loops "
                    "with a coordinator. Leave it out: a TF_CONFIG with tasks of type 'ps' is enough. "
                    f"Received: {name}={both[0] or both[1]!r}"
                )
        has_chief = cluster_lib.CHIEF in cluster.training_tasks or cluster.has_chief
        if cluster.training_tasks and not (has_chief or self.trains_by_strategy):
            raise ValueError(
                "TF_CONFIG's `cluster` must have a 'chief' task; it may have only workers with a "
                f"train_distribute. Received: {sorted(cluster.training_tasks)}"
            )
        if self.tf_random_seed is not None and not isinstance(self.tf_random_seed, int):
            raise ValueError(f"tf_random_seed must be an integer. Received: {self.tf_random_seed!r}")
        if self.device_fn is not None and not callable(self.device_fn):
            raise ValueError(f"device_fn must be callable with one argument. Received: {self.device_fn!r}")
        if self.device_fn is not None and _positional(self.device_fn) != ["op"]:
            raise ValueError(
                'device_fn must be callable with exactly one argument "op". Received: '
                f"{self.device_fn!r} with {_positional(self.device_fn)}"
            )

    @property
    def trains_by_strategy(self) -> bool:
        """True if training has a `tf.distribute` strategy."""
        in_both = getattr(self.experimental_distribute, "train_distribute", None)
        return self.train_distribute is not None or in_both is not None

    def _settle_checkpoint_interval(self) -> None:
        steps, secs = self.save_checkpoints_steps, self.save_checkpoints_secs
        if steps is _USE_DEFAULT and secs is _USE_DEFAULT:
            steps, secs = None, _DEFAULT_SAVE_CHECKPOINTS_SECS
        elif steps is _USE_DEFAULT:
            steps = None
        elif secs is _USE_DEFAULT:
            secs = None
        elif steps is not None and secs is not None:
            raise ValueError(
                "save_checkpoints_steps and save_checkpoints_secs cannot both be set. Received: "
                f"save_checkpoints_steps={steps}, save_checkpoints_secs={secs}"
            )
        self._set("save_checkpoints_steps", steps)
        self._set("save_checkpoints_secs", secs)

    def _set(self, name: str, value: Any) -> None:
        # setattr would fail if a subclass has a property of this name.
        self.__dict__[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute that is not a setting, or a setting for the first time."""
        if name in self.__dict__ and name in self.__dataclass_fields__:
            raise AttributeError(
                f"{name} of a RunConfig is read-only: config.replace({name}=...) returns a changed "
                f"copy. Received: {name}={value!r}"
            )
        if name in self.__dataclass_fields__:
            self._set(name, value)
        else:
            super().__setattr__(name, value)

    def replace(self, **changes: Any) -> RunConfig:
        """Returns a copy with `changes`; one checkpoint interval replaces the other.

        Raises:
            ValueError: A setting is unknown, or a value is invalid.
        """
        settings = [field.name for field in dataclasses.fields(self) if field.init]
        for name in changes:
            if name not in settings:
                raise ValueError(f"RunConfig has no setting {name!r} to replace. It has: {settings}")
        steps, secs = "save_checkpoints_steps", "save_checkpoints_secs"
        if steps in changes and secs not in changes:
            changes[secs] = None if changes[steps] is not None else self.save_checkpoints_secs
        elif secs in changes and steps not in changes:
            changes[steps] = None if changes[secs] is not None else self.save_checkpoints_steps
        changed = copy.copy(self)
        for name, value in changes.items():
            changed.__dict__[name] = value
        changed.__post_init__()
        # As in 2.15, a copy has no separate default.
        changed.__dict__["session_config"] = changes.get("session_config", self.session_config)
        return changed

    def with_session_config(self) -> RunConfig:
        """Returns this object, or a copy with the default `session_config` when it has none."""
        if self.session_config is not None:
            return self
        return self.replace(session_config=_default_session_config(self._cluster))

    def sharding(self, mode: str) -> Any:
        """Returns the `execution.sharded.Sharding` of a mode; None for no sharding."""
        del mode

    @property
    def task_cluster(self) -> cluster_lib.Cluster:
        """The cluster that trains and this process's task, read from TF_CONFIG when this object was made.

        An evaluator that TF_CONFIG lists, as TensorFlow's MultiWorkerMirroredStrategy wants it, is left out.
        """
        return self._cluster.without_evaluator

    @property
    def is_distributed(self) -> bool:
        """True if several processes train together."""
        return self._cluster.is_distributed

    @property
    def is_in_cluster(self) -> bool:
        """True if TF_CONFIG lists this process as a task of a cluster, or as its evaluator."""
        return bool(self._cluster.tasks) or self.task_type == cluster_lib.EVALUATOR

    @property
    def cluster_spec(self) -> tf.train.ClusterSpec:
        """The cluster as TensorFlow's `ClusterSpec`."""
        return self._cluster.spec

    @property
    def task_type(self) -> str:
        """Type of this task: chief, worker, ps, evaluator or another; worker on a single machine."""
        return self._cluster.task_type

    @property
    def task_id(self) -> int:
        """Index of this task among those of its type."""
        return self._cluster.task_id

    @property
    def global_id_in_cluster(self) -> int | None:
        """Rank of this task among all; None for an evaluator."""
        return self._cluster.global_id

    @property
    def master(self) -> str:
        """Address of the session that training opens."""
        return self._cluster.master

    @property
    def evaluation_master(self) -> str:
        """Address of the session that evaluation opens; "" is in this process."""
        return self._cluster.evaluation_master

    @property
    def is_chief(self) -> bool:
        """True if this task saves checkpoints and summaries."""
        return self._cluster.is_chief

    @property
    def num_ps_replicas(self) -> int:
        """Number of parameter servers."""
        return self._cluster.num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """Number of tasks that train."""
        return self._cluster.num_worker_replicas

    @property
    def service(self) -> Any:
        """TF_CONFIG's `service` entry, or None."""
        return self._cluster.service


def _positional(function: Callable[..., Any]) -> list[str]:
    """Returns the names of the arguments that can be given by position."""
    parameters = inspect.signature(function).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in by_position]


def _default_session_config(cluster: cluster_lib.Cluster) -> Any:
    """Returns soft placement, one grappler pass and, in a cluster, device filters."""
    rewriter = tf1.rewriter_config_pb2.RewriterConfig
    options = rewriter(meta_optimizer_iterations=rewriter.ONE)
    return tf1.ConfigProto(
        allow_soft_placement=True,
        graph_options=tf1.GraphOptions(rewrite_options=options),
        device_filters=_device_filters(cluster),
    )


def check_path(name: str, path: str) -> None:
    """Checks that TensorFlow finds again what it writes to `path`."""
    # TensorFlow looks for the files of a checkpoint by a glob pattern that starts with the directory, also
    # when it deletes them: training in "run*" would delete the checkpoints of "run1".
    special = [character for character in "*?[\\" if character in path and character != os.sep]
    if special:
        raise ValueError(
            f"{name} must not contain {' or '.join(special)}, because TensorFlow uses the paths of "
            f"checkpoints as glob patterns. Rename the directory. Received: {name}={path!r}"
        )
    if re.match(r"\w\w+:/(?!/)", path):
        raise ValueError(
            f"{name} must have two slashes after the scheme. pathlib.Path removes one of them, so pass "
            f"URLs as str. Received: {name}={path!r}"
        )


def _device_filters(cluster: cluster_lib.Cluster) -> list[str]:
    """Returns the devices that a session of this task reaches; none is all."""
    kind = cluster.task_type if cluster.tasks else None
    own = {
        cluster_lib.CHIEF: ["/job:chief"],
        cluster_lib.MASTER: ["/job:master"],
        cluster_lib.WORKER: [f"/job:worker/task:{cluster.task_id}"],
        cluster_lib.PS: ["/job:worker", "/job:chief", "/job:master"],
    }
    return ["/job:ps", *own[kind]] if kind in own else []
