"""Names for types that many signatures use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from estimator_core import tf1
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec

InputFn: TypeAlias = Callable[..., Any]
"""Function of any of `mode`, `params`, `config` and `input_context`.

It returns a `tf.data.Dataset` of features or (features, labels), or tensors of them.
"""

ModelFn: TypeAlias = Callable[..., EstimatorSpec]
"""Function of `features` and any of `labels`, `mode`, `params` and `config` that builds the model."""

ReceiverFn: TypeAlias = Callable[[], Any]
"""Function without arguments that returns a `ServingInputReceiver` or another receiver."""

Hook: TypeAlias = tf1.train.SessionRunHook
SavingListener: TypeAlias = tf1.train.CheckpointSaverListener


class EstimatorLike(Protocol):
    """The interface of an Estimator for hooks and exporters."""

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
