"""Keeps packages of TFX and of what it uses from importing all their modules when only one is needed.

`tfx.components` imports every component of TFX, and with them Transform, TFMA, Beam and a Kubernetes client,
even for `tfx.components.schema_gen.executor` alone. TensorFlow imports Keras, and with it scikit-learn,
matplotlib and IPython, a quarter of the time. With this module these packages are still found, but their
`__init__.py` runs only when a name is requested that is not a module of the package.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
import types
from collections.abc import Callable, Collection, Sequence
from typing import Any

_PACKAGES: dict[str, tuple[str, ...]] = {
    "tensorflow_model_analysis": (
        "google.protobuf.wrappers_pb2",
        "tensorflow_model_analysis.proto.config_pb2",
        "tensorflow_model_analysis.proto.metrics_for_slice_pb2",
    ),
    "tensorflow_model_analysis.view": (),
    "tfx.components": (),
    "keras.saving": (),
    "keras.src.visualization": (),
    "keras.visualization": (),
    "keras.wrappers": (),
    "IPython": (),
    "google.cloud.bigquery": (),
    "google.cloud.pubsub": (),
    "nltk": (),
    "nltk.stem": (),
    "scipy.stats": (),
}
"""Packages, and the modules to import before theirs: TFMA's protos need each other without importing them.

The names in these modules are also names of the package: `tfx.components` reads `EvalConfig` and others from
TFMA, and old pipelines write `tfma.EvalConfig`.
"""


def _get_ipython() -> Any:
    """Returns IPython's shell, if any, for which Beam asks with its first step."""
    shells = sys.modules.get("IPython.core.getipython")
    return shells and shells.get_ipython()


def _version_info() -> Any:
    """Returns IPython's version, which matplotlib asks for with its first figure."""
    return importlib.import_module("IPython.core.release").version_info


_ANSWERS: dict[str, dict[str, Callable[[], Any]]] = {
    "IPython": {"get_ipython": lambda: _get_ipython, "version_info": _version_info}
}
"""Names that are answered without the import of their package: functions that return their values."""

_SPECIAL_NAMES = ("__all__", "__version__")


class _DeferredLoader(importlib.abc.Loader):
    """Runs a package's `__init__.py` when one of its names is requested."""

    def __init__(self, loader: importlib.abc.Loader):
        self._loader = loader
        self._lock = threading.RLock()  # another thread waits until the names are there
        self._has_begun = False

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves the module empty except for a function that finds its names."""
        module.__dict__["__getattr__"] = lambda name: self._find(module, name)
        for first in _PACKAGES[module.__name__]:
            importlib.import_module(first)

    def _find(self, module: types.ModuleType, name: str) -> Any:
        package = module.__name__
        if not self._has_begun and name in _ANSWERS.get(package, ()):
            return _ANSWERS[package][name]()
        if not name.startswith("__") or name in _SPECIAL_NAMES:
            if hasattr(module, "__path__") and importlib.util.find_spec(f"{package}.{name}"):
                return importlib.import_module(f"{package}.{name}")
            with self._lock:
                if not self._has_begun:
                    self._has_begun = True
                    try:
                        self._loader.exec_module(module)
                    except BaseException:
                        self._has_begun = False  # the next request fails with the same reason
                        raise
            for owner in (module, *(sys.modules[first] for first in _PACKAGES[package])):
                if name in owner.__dict__:
                    return owner.__dict__[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")


class WrappingFinder(importlib.abc.MetaPathFinder):
    """Finds modules as usual, but has another loader load some of them."""

    def __init__(self, names: Collection[str], wrap: Callable[[Any], importlib.abc.Loader]):
        self.names = names
        self._wrap = wrap

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = self._wrap(spec.loader)
        return spec

    def install(self) -> None:
        """Puts it before all other finders, unless a finder for the same modules is there already."""
        finders = (finder for finder in sys.meta_path if isinstance(finder, WrappingFinder))
        if all(finder.names is not self.names for finder in finders):
            sys.meta_path.insert(0, self)


def install() -> None:
    """Defers the packages, before all other finders. Idempotent; imported packages are not affected."""
    WrappingFinder(_PACKAGES, _DeferredLoader).install()
    tfma = sys.modules.get("tensorflow_model_analysis")
    # TFX itself repairs some names of protos, but not PerSliceMetricThreshold.
    if tfma is not None and not hasattr(tfma, "PerSliceMetricThreshold"):
        # Without TFDV's stand-in its import ended halfway, and TFMA 0.52 has lost the names of its protos.
        importlib.reload(tfma)
