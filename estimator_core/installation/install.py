"""install: restores `tf.estimator`, for code that can't be changed."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import tensorflow as tf

from estimator_core.installation.model_analysis import provide_export
from estimator_core.installation.old_head_attributes import provide_attributes
from estimator_core.installation.old_modules import OldModuleFinder
from estimator_core.installation.old_places import CONTRIB_ROOT

_OWNERS = {
    "tensorflow": "estimator_core",
    "tensorflow.compat.v1": "estimator_core.v1",
    "tensorflow.compat.v1.compat.v1": "estimator_core.v1",
    "tensorflow.compat.v1.compat.v2": "estimator_core",
    "tensorflow.compat.v2": "estimator_core",
    "tensorflow.compat.v2.compat.v1": "estimator_core.v1",
    "tensorflow.compat.v2.compat.v2": "estimator_core",
}
_STANDALONE = "tensorflow_estimator"
_KERAS_ESTIMATOR = "tensorflow.keras.estimator"


def install(contrib: bool = False) -> None:
    """Makes `tf.estimator` and `tf.compat.v1.estimator` resolve to this package.

    Call it before importing the code that needs them; a second call changes nothing. From then on
    these work:

    - `tf.estimator`, `import tensorflow.estimator`, `from tensorflow.estimator import export`
    - `tf.compat.v1.estimator`, `from tensorflow.compat.v1 import estimator`, and the same of
      `tf.compat.v2`
    - `tf.tpu.CrossShardOptimizer` and `tf.tpu.cross_replica_sum`, as in TensorFlow 1 and in `tf.compat.v1`
    - `from tensorflow_estimator import estimator`, the same as `tf.compat.v1.estimator`
    - `tf.keras.estimator.model_to_estimator`, and importing it from there
    - imports from the modules inside tensorflow_estimator, such as
      `from tensorflow_estimator.python.estimator.canned import metric_keys`, for public names and
      the helpers that programs used; also below `tensorflow.python.estimator`
    - `tfma.export.EvalInputReceiver`, `export_eval_savedmodel` and
      `build_parsing_eval_input_receiver_fn` of TensorFlow Model Analysis, where it is installed

    Args:
        contrib: True also provides `tf.contrib`, with those of its names that Estimator programs use
            and that are functions of TensorFlow or of this package today.

    Example:
        >>> import estimator_core
        >>> estimator_core.install()
        >>> tf.estimator.DNNClassifier is estimator_core.DNNClassifier
        True

    Raises:
        RuntimeError: TensorFlow has its own `tf.estimator`, as before 2.16.
    """
    core = importlib.import_module("estimator_core")
    # `tf.estimator` would load the original; the dictionary does not.
    present = vars(tf).get("estimator")
    if present is None:
        _provide_estimator()
    elif present is not core:
        raise RuntimeError(
            "This TensorFlow has its own tf.estimator, which install() does not replace: import "
            "estimator_core under its own name, or use TensorFlow 2.16 or later. "
            f"Received: TensorFlow {tf.__version__}"
        )
    if contrib and CONTRIB_ROOT not in sys.modules:
        sys.meta_path.insert(0, OldModuleFinder(contrib=True))
        tf1_module: Any = importlib.import_module("tensorflow.compat.v1")
        tf1_module.contrib = importlib.import_module(CONTRIB_ROOT)


def _provide_estimator() -> None:
    for owner, package in _OWNERS.items():
        _provide(owner, "estimator", importlib.import_module(package))
    tpu: Any = importlib.import_module("estimator_core.tpu")
    for name in ("CrossShardOptimizer", "cross_replica_sum"):
        setattr(tf.tpu, name, getattr(tpu, name))
    # tensorflow_estimator 2.15 may be installed, since TensorFlow Model Analysis requires it; it can't be
    # imported with this TensorFlow.
    for name in [name for name in list(sys.modules) if name.split(".")[0] == _STANDALONE]:
        del sys.modules[name]
    sys.meta_path.insert(0, OldModuleFinder())
    provide_attributes()
    provide_export()
    # Keras 3 is one module for both versions: TensorFlow 2's estimator is assigned last.
    for owner in ("tensorflow.compat.v1", "tensorflow.compat.v2"):
        module = _keras_estimator(importlib.import_module(_OWNERS[owner]))
        importlib.import_module(owner).keras.estimator = module
    tf.keras.estimator = sys.modules[_KERAS_ESTIMATOR] = tf.compat.v2.keras.estimator


def _keras_estimator(package: Any) -> types.ModuleType:
    module: Any = types.ModuleType(_KERAS_ESTIMATOR, "Keras models as Estimators.")
    module.model_to_estimator = package.model_to_estimator
    return module


def _provide(owner: str, name: str, module: types.ModuleType) -> None:
    """Makes `module` an attribute of `owner`, and importable from there with its public modules."""
    owner_module: Any = importlib.import_module(owner)
    setattr(owner_module, name, module)
    full_name = f"{owner}.{name}"
    sys.modules[full_name] = module
    for public in module.__all__:
        value = getattr(module, public)
        if isinstance(value, types.ModuleType):
            sys.modules[f"{full_name}.{public}"] = value
