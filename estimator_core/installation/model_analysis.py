"""`tensorflow_model_analysis.export`, which TFMA removed with tf.estimator, for classic TFX modules."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.estimator import Estimator
from estimator_core.export import EvalInputReceiver
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import ReceiverFn

PACKAGE = "tensorflow_model_analysis"


def export_eval_savedmodel(
    estimator: Estimator,
    export_dir_base: str,
    eval_input_receiver_fn: ReceiverFn,
    serving_input_receiver_fn: ReceiverFn | None = None,
    assets_extra: Mapping[str, str] | None = None,
    checkpoint_path: str | None = None,
) -> bytes:
    """Exports the evaluation model, and optionally the serving model, below `export_dir_base`.

    `export_dir_base`: directory; the model goes to a new one below it, named by the time.

    Source: `tfma.export.export_eval_savedmodel`.
    """
    receiver_fns = {ModeKeys.EVAL: eval_input_receiver_fn}
    if serving_input_receiver_fn is not None:
        receiver_fns[ModeKeys.PREDICT] = serving_input_receiver_fn
    return estimator.experimental_export_all_saved_models(
        export_dir_base, receiver_fns, assets_extra=assets_extra, checkpoint_path=checkpoint_path
    )


def build_parsing_eval_input_receiver_fn(
    feature_spec: Mapping[str, Any], label_key: str | None
) -> Callable[[], EvalInputReceiver]:
    """Returns an `eval_input_receiver_fn` that parses serialized tf.Examples.

    `label_key`: feature of the label, which stays among the features; None makes all features labels.

    Source: `tfma.export.build_parsing_eval_input_receiver_fn`.
    """

    def eval_input_receiver_fn() -> EvalInputReceiver:
        serialized = tf1.placeholder(tf.string, [None], name="input_example_tensor")
        features = tf.io.parse_example(serialized, dict(feature_spec))
        labels = features if label_key is None else features[label_key]
        return EvalInputReceiver(features, {"examples": serialized}, labels)

    return eval_input_receiver_fn


def provide_export() -> None:
    """Adds the module `export` to TFMA: now if it is imported, else when it will be."""
    package = sys.modules.get(PACKAGE)
    if package is None:
        sys.meta_path.insert(0, _FinderOfPackage())
    else:
        _add_export(package)


def _add_export(package: types.ModuleType) -> None:
    if hasattr(package, "export"):
        return
    module: Any = types.ModuleType(f"{PACKAGE}.export", "Export of evaluation models, for classic modules.")
    module.EvalInputReceiver = EvalInputReceiver
    module.build_parsing_eval_input_receiver_fn = build_parsing_eval_input_receiver_fn
    module.export_eval_savedmodel = export_eval_savedmodel
    package.export = sys.modules[module.__name__] = module  # type: ignore[attr-defined]
    # Some modules import it from the file that defined it.
    sys.modules[f"{PACKAGE}.eval_saved_model.export"] = module


class _FinderOfPackage(importlib.abc.MetaPathFinder):
    """Finds TFMA as the other finders do, and adds `export` once it has been loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of TFMA, whose loader adds the module; None for other modules."""
        if fullname != PACKAGE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        loader: Any = spec and spec.loader
        if loader is not None:
            load = loader.exec_module

            def load_and_add(module: types.ModuleType) -> None:
                load(module)
                _add_export(module)

            loader.exec_module = load_and_add
        return spec
