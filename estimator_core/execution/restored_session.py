"""Sessions with the values of a checkpoint, without adding restore operations to the graph.

A `Scaffold` adds a saver, checks of each variable and initializers to the graph, and runs them one after the
other. For a graph that is run only once, such as for a single prediction, that takes longer than the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.whole import open_checkpoint
from estimator_core.logs import logger

_OF_SCAFFOLD = (
    "init_op",
    "init_feed_dict",
    "init_fn",
    "ready_op",
    "ready_for_local_init_op",
    "local_init_op",
    "local_init_feed_dict",
    "summary_op",
    "saver",
)
# Collections from which a Scaffold takes its operations, besides those of variables and tables.
_COLLECTIONS = (
    tf1.GraphKeys.INIT_OP,
    tf1.GraphKeys.READY_OP,
    tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP,
    tf1.GraphKeys.LOCAL_INIT_OP,
    tf1.GraphKeys.SUMMARY_OP,
    tf1.GraphKeys.SAVERS,
    tf1.GraphKeys.SAVEABLE_OBJECTS,
    tf1.GraphKeys.RESOURCES,
    tf1.GraphKeys.LOCAL_RESOURCES,
)
_MOST_BYTES = 256 << 20  # for a moment, the values are in memory twice


@dataclasses.dataclass
class KeptSession:
    """The session of a graph's last evaluation, for the next one: a new session optimizes the graph again."""

    session: Any = None


class _OpenSession(tf1.Session):
    """Stays open at the end of a `MonitoredSession`."""

    def close(self) -> None:
        """Does nothing; the session is freed with the last reference to it."""


def restored_session(
    scaffold: Any, checkpoint_path: str, config: Any, kept: KeptSession | None = None
) -> Any:
    """Returns a session of the default graph, ready to run; None if a `Scaffold` is needed to create it.

    The variables have the values of the checkpoint; local variables and tables are initialized. The graph is
    finalized.

    `kept`: keeps the session for the next call; None closes it after use.
    """
    is_default = type(scaffold) is tf1.train.Scaffold and all(
        getattr(scaffold, name) is None for name in _OF_SCAFFOLD
    )
    if not is_default or any(tf1.get_collection(name) for name in _COLLECTIONS):
        return None
    variables = tf1.global_variables()
    feed = _values_to_feed(variables, checkpoint_path)
    if feed is None:
        return None
    local = [variable.initializer for variable in tf1.local_variables()]
    if tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
        kept = None  # a `MonitoredSession` closes their queues at its end
    session = kept.session if kept else None
    if session is None:
        local += tf1.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
        session = _OpenSession(config=config) if kept else tf1.Session(config=config)
    session.graph.finalize()
    logger.info("Graph was finalized.")
    try:
        logger.info("Restoring parameters from %s", checkpoint_path)
        session.run([variable.initializer for variable in variables], feed)
        logger.info("Running local_init_op.")
        if local:
            session.run(local)
        logger.info("Done running local_init_op.")
    except BaseException:
        session.close()
        raise
    if kept:
        kept.session = session
    return session


def _values_to_feed(variables: Sequence[Any], checkpoint_path: str) -> dict[Any, Any] | None:
    """Returns feeds of the variables' initializers, with the values from the checkpoint.

    Returns the feeds; None if a saver has to restore the variables, or to raise the error why it can't.
    """
    reader = open_checkpoint(checkpoint_path)
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    feed: dict[Any, Any] = {}
    size = 0
    for variable in variables:
        name = variable.op.name
        initializer = variable.initializer
        is_plain = (
            getattr(variable, "_save_slice_info", None) is None
            and getattr(initializer, "type", None) == "AssignVariableOp"
            and name in shapes
            and dtypes[name] == variable.dtype.base_dtype
            and variable.shape.is_compatible_with(shapes[name])
        )
        if not is_plain:
            return None
        size += tf.TensorShape(shapes[name]).num_elements() * dtypes[name].size
        value = initializer.inputs[1]
        if value.ref() in feed or not value.graph.is_feedable(value) or size > _MOST_BYTES:
            return None
        feed[value.ref()] = name
    return {value.deref(): reader.get_tensor(name) for value, name in feed.items()}
