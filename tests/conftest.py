"""Two CPU devices for the tests of tf.distribute; what asks for none goes on using the first.

Warnings are errors in the folders of the core that are listed below; a folder joins once it has run
without any. Those of `components` and `pipelines` stay exempt: TFX, Beam and Kubeflow's libraries
warn of each other's versions, and none of it is ours to mend.
"""

import pathlib

import pytest
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

WITHOUT_WARNINGS = (
    "contract",
    "guides",
    "estimator_core/checkpoints",
    "estimator_core/clustering",
    "estimator_core/execution",
    "estimator_core/experimental",
    "estimator_core/export",
    "estimator_core/feature_columns",
    "estimator_core/graphs",
    "estimator_core/heads",
    "estimator_core/hooks",
    "estimator_core/inputs",
    "estimator_core/keras_in_graph",
    "estimator_core/logits",
    "estimator_core/optimizers",
    "estimator_core/sdca",
    "estimator_core/spec",
    "estimator_core/tpu",
    "estimator_core/training",
    "estimator_core/v1",
)


def pytest_collection_modifyitems(items):
    """Turns warnings into errors while a test runs; what imports warn of is exempt."""
    folders = [pathlib.Path(__file__).parent / folder for folder in WITHOUT_WARNINGS]
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in folders):
            item.add_marker(pytest.mark.filterwarnings("error"))
