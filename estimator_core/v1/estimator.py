"""`tf.compat.v1.estimator.Estimator`: the Estimator with the export method of its first years."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_core import estimator


class Estimator(estimator.Estimator):
    """An `estimator_core.Estimator` that also has `export_savedmodel`.

    Source: `tf.compat.v1.estimator.Estimator`.
    """

    def export_savedmodel(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Exports the model as a SavedModel and returns its directory.

        Args:
            export_dir_base: Directory that holds the exports.
            serving_input_receiver_fn: Function without arguments that returns a
                `ServingInputReceiver` or `TensorServingInputReceiver`.
            assets_extra: Paths below `assets.extra/` to the files to copy there.
            as_text: Whether the graph is written as text.
            checkpoint_path: Checkpoint to export; None takes the newest one.
            strip_default_attrs: Not used: attributes at their defaults are always left out, as
                `export_saved_model` does it. TensorFlow reads such a model no differently.

        Raises:
            ValueError: There is no checkpoint, or no signature can be exported.
        """
        del strip_default_attrs
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )
