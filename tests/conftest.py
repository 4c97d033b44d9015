"""Two CPU devices for the tests of tf.distribute; other tests go on using the first.

Warnings are errors in the folders that are listed below. Those of `components` and `pipelines` stay
exempt: TFX, Beam and Kubeflow's libraries warn of each other's versions, and none of it is ours to mend.
"""

import contextlib
import gc
import os
import pathlib
import sys

import psutil
import pytest

from tests.circles import mark_all_but_samples
from tests.warm_command import WarmCommand

# The controller of parallel tests runs none, and need not wait for an import of TensorFlow.
IS_CONTROLLER = "PYTEST_XDIST_WORKER" not in os.environ and any(
    argument.startswith("--numprocesses=") and argument != "--numprocesses=0" for argument in sys.argv
)

if not IS_CONTROLLER:
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )

    # `make test-tf1`: as programs of TensorFlow 1 begin. Its effect on a process can't be undone.
    if os.environ.get("TF1_BEHAVIOR") == "1":
        tf.compat.v1.disable_v2_behavior()

    # The first use of `tf.keras` decides which Keras it is, and the import of Transform asks for Keras 2:
    # it is decided here, by the environment alone.
    tf.keras.Model  # noqa: B018

    # Objects left by imports stay to the end. Each of Python's full collections would walk all of it, and
    # graphs, which are large and cyclic, bring about many: an eighth of the time of the tests.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)

WITHOUT_WARNINGS = ("contract", "estimator_core", "guides", "integration", "oracle")

# tf_keras 2.16 draws its seeds in a way that Python has deprecated.
_SEEDS = "ignore:non-integer arguments to randrange:DeprecationWarning"

# AutoGraph's syntax trees, since Python 3.13.
_AUTOGRAPH = "ignore:.*___pyct_anno:DeprecationWarning"

# Warnings of libraries, by the folder whose tests bring them about.
OF_LIBRARIES = {
    "estimator_core/keras_in_graph": (_SEEDS,),
    "estimator_core/logits": (_SEEDS,),
    # The layers of TensorFlow 1 in tf_keras; old programs use them.
    "oracle": ("ignore:`tf.layers.*` is deprecated:UserWarning",),
    "estimator_core/keras_models": (
        _SEEDS,
        # Keras saves a model by making arrays of TensorFlow's variables, which know no copy keyword.
        "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning:"
        "keras.src.backend.tensorflow.core",
        # Keras loads an optimizer that was saved before it had any slots: there are none to load.
        "ignore:Skipping variable loading for optimizer:UserWarning:keras.src.saving.saving_lib",
    ),
}


pytest_plugins = ("tests.cpu_budget",)

BYTES_OF_A_WORKER = 4 << 30


def pytest_xdist_auto_num_workers():
    """One worker more than processors, as a quarter of the time is spent waiting, unless memory is short."""
    memory = psutil.virtual_memory().available  # includes the cache of files, which the system gives back
    return max(1, min(len(os.sched_getaffinity(0)) + 1, memory // BYTES_OF_A_WORKER))


# Whose files take longest: they begin first, so that no worker waits for another's last one.
LONGEST_FIRST = ("oracle", "integration", "pipelines", "components", "contract")


@pytest.hookimpl(tryfirst=True)  # before pytest's own deselects by marks
def pytest_collection_modifyitems(items):
    """Turns warnings into errors while a test runs, but not while it is imported. Long files first."""
    mark_all_but_samples(items)
    here = pathlib.Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(here).parts[0] not in LONGEST_FIRST)
    for item in items:
        if any(item.path.is_relative_to(here / folder) for folder in WITHOUT_WARNINGS):
            filters = ["error", _AUTOGRAPH]
            for folder, ignored in OF_LIBRARIES.items():
                if item.path.is_relative_to(here / folder):
                    filters += ignored
            item.add_marker(pytest.mark.filterwarnings(*filters))


def pytest_runtest_logreport(report):
    """Names a failed test at once: a run that is cut off would not show it otherwise."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        crash = getattr(report.longrepr, "reprcrash", None)
        print(f"\n{report.when}: {report.nodeid}\n{str(crash or report.longrepr)[:2000]}", flush=True)


@pytest.fixture
def uninstalled():
    """Begins without the names that `install()` puts into other modules, and ends without them."""
    finders = list(sys.meta_path)
    _uninstall()
    yield
    _uninstall()
    sys.meta_path[:] = [finder for finder in finders if not _is_ours(finder)]


def _uninstall():
    owners = [tf, tf.compat.v1, tf.compat.v2, tf.keras, tf.compat.v1.keras, tf.compat.v2.keras]
    owners += [getattr(tf.compat, outer).compat for outer in ("v1", "v2")]
    owners += [getattr(owner, inner) for owner in owners[-2:] for inner in ("v1", "v2")]
    for owner in owners:
        for name in ("estimator", "contrib"):
            with contextlib.suppress(AttributeError):
                delattr(owner, name)
    for name in ("CrossShardOptimizer", "cross_replica_sum"):
        with contextlib.suppress(AttributeError):
            delattr(tf.tpu, name)
    model_analysis = sys.modules.get("tensorflow_model_analysis")
    if model_analysis is not None and hasattr(model_analysis, "export"):
        del model_analysis.export
    for name in set(sys.modules):
        first = name.split(".")[0]
        if (
            first == "tensorflow_estimator"
            or (first == "tensorflow_model_analysis" and name.endswith(".export"))
            or (first == "tensorflow" and {"contrib", "estimator", "estimator_training"} & {*name.split(".")})
        ):
            del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_ours(finder)]


def _is_ours(finder):
    return type(finder).__module__.startswith("estimator_core.installation")


@pytest.fixture(scope="session")
def warm_command():
    """Runs `python -m pipelines` in a process that has done the imports already."""
    with contextlib.closing(WarmCommand()) as command:
        yield command
