"""Names for the types that occur again and again in signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from estimator_core import tf1
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec

InputFn: TypeAlias = Callable[..., Any]
"""Returns a `tf.data.Dataset` of features or (features, labels), or such tensors.

It takes any of `mode`, `params`, `config` and `input_context`.
"""

ModelFn: TypeAlias = Callable[..., EstimatorSpec]
"""Builds the model; takes `features` and any of `labels`, `mode`, `params` and `config`."""

ReceiverFn: TypeAlias = Callable[[], Any]
"""Returns a `ServingInputReceiver` or another receiver of its kind; takes no arguments."""

Hook: TypeAlias = tf1.train.SessionRunHook
SavingListener: TypeAlias = tf1.train.CheckpointSaverListener


class EstimatorLike(Protocol):
    """What hooks and exporters need of an Estimator."""

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints, summaries and exports."""

    @property
    def config(self) -> RunConfig:
        """The settings of this run."""

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the directory of evaluation summaries."""

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Exports the model and returns its directory."""
