"""Private functions of tensorflow_estimator's estimator, model_fn, util and export modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import summaries, tf1
from estimator_core.checkpoints import reader
from estimator_core.execution.inputs import features_and_labels
from estimator_core.execution.parameter_server import replica_device_setter
from estimator_core.export import saved_model
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import checked_instances
from estimator_core.spec.calling import check_model_fn
from estimator_core.spec.export_outputs import ExportOutput
from estimator_core.spec.keys import MetricKeys
from estimator_core.spec.mode_keys import ModeKeys

LOSS_METRIC_KEY = MetricKeys.LOSS
AVERAGE_LOSS_METRIC_KEY = MetricKeys.LOSS_MEAN


class _Gauge:
    """Counts nothing; TensorFlow's own gauges counted which Estimators Google's programs use."""

    def get_cell(self, *labels: str) -> _Gauge:
        """Returns the cell of some labels."""
        del labels
        return self

    def set(self, value: Any) -> None:
        """Takes the value of the cell."""


_canned_estimator_api_gauge = _estimator_api_gauge = _Gauge()


def _load_global_step_from_checkpoint_dir(checkpoint_dir: str) -> int:
    """Returns the global step of the newest checkpoint of a directory; 0 if there is none to read."""
    try:
        return reader.saved_global_step(checkpoint_dir)
    except (ValueError, tf.errors.OpError):
        return 0


def _check_hooks_type(hooks: Iterable[Any] | None) -> list[Any]:
    return list(checked_instances(hooks, "hooks"))


def _check_listeners_type(saving_listeners: Iterable[Any] | None) -> list[Any]:
    kind = tf1.train.CheckpointSaverListener
    return list(checked_instances(saving_listeners, "saving_listeners", kind))


def _get_replica_device_setter(config: RunConfig) -> Callable[[Any], str] | None:
    """Returns the function that places variables on parameter servers; None if there are none."""
    return replica_device_setter(config.task_cluster) if config.num_ps_replicas else None


def _verify_model_fn_args(model_fn: Callable[..., Any], params: Any) -> None:
    """Checks that an Estimator can call a model_fn."""
    check_model_fn(model_fn, params)


def _extract_metric_update_ops(
    eval_dict: Mapping[str, tuple[Any, Any]], distribution: Any = None
) -> tuple[Any, dict[str, Any]]:
    """Returns the operation that adds a batch to all metrics, and the values of the metrics by name.

    `distribution`: `tf.distribute` strategy of the metrics, or None.
    """
    updates = [update for _, (_, update) in sorted(eval_dict.items())]
    if distribution is not None:
        updates = [distribution.group(update) for update in updates]
    values = {name: value for name, (value, _) in sorted(eval_dict.items())}
    return tf.group(*updates) if updates else None, values


def _write_dict_to_summary(output_dir: str, dictionary: Mapping[str, Any], current_global_step: int) -> None:
    """Writes the results of an evaluation for TensorBoard; see `write_evaluation`."""
    summaries.write_evaluation(output_dir, dictionary, current_global_step)


def parse_iterator_result(result: Any) -> tuple[Any, Any]:
    """Returns (features, labels) of one element of an input; labels are None when there are none."""
    return features_and_labels(result, ModeKeys.TRAIN)


def get_timestamped_export_dir(export_dir_base: str | bytes) -> bytes:
    """Returns a directory named by seconds since the epoch that no other export has taken."""
    return saved_model.timestamped_directory(os.fsdecode(export_dir_base)).encode()


def get_temp_export_dir(timestamped_export_dir: str | bytes) -> bytes:
    """Returns the directory in which the export to another directory is prepared."""
    head, timestamp = os.path.split(os.fsdecode(timestamped_export_dir))
    return os.path.join(head, f"temp-{timestamp}").encode()


def build_all_signature_defs(
    receiver_tensors: Any,
    export_outputs: Mapping[str, ExportOutput],
    receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    serving_only: bool = True,
) -> dict[str, Any]:
    """Returns the `SignatureDef`s of all outputs for all groups of receiver tensors.

    `receiver_tensors_alternatives`: further groups of tensors that may be fed instead.
    `serving_only`: not used; outputs that can't be served are left out.
    """
    del serving_only
    if not isinstance(export_outputs, Mapping):
        raise ValueError(f"export_outputs must be a dict. Received: {export_outputs!r}")
    alternatives = {
        name: _by_name(tensors) for name, tensors in (receiver_tensors_alternatives or {}).items()
    }
    return saved_model.signature_defs(export_outputs, _by_name(receiver_tensors), alternatives)


def _by_name(tensors: Any) -> Mapping[str, Any]:
    return tensors if isinstance(tensors, Mapping) else {"input": tensors}
