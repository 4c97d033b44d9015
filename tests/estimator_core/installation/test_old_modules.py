import importlib
import inspect
import json
import pathlib
import sys

import pytest
import tensorflow as tf

import estimator_core

TABLE = json.loads((pathlib.Path(__file__).parent / "old_modules.json").read_text())
ARGUMENTS = json.loads((pathlib.Path(__file__).parent / "old_arguments.json").read_text())
OLD = "tensorflow_estimator.python.estimator"
OTHER_ARGUMENTS = {
    "ExportSavedModelApiVersion",
    "SequentialHeadWrapper",
    "TPUContext",
    "_negation",
    "_union",
    "estimator_export",
    "model_to_estimator",
}


@pytest.fixture(autouse=True)
def installed(uninstalled):
    estimator_core.install()


def resolved(path):
    """Returns the object of ours at a public path such as "tf.compat.v1.estimator.tpu.RunConfig"."""
    value = tf
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("module", sorted(TABLE))
def test_public_names_are_in_the_modules_that_defined_them(module):
    for name, public in TABLE[module].items():
        assert getattr(importlib.import_module(module), name) is resolved(public), name
        below_tensorflow = module.replace("tensorflow_estimator", "tensorflow")
        assert getattr(importlib.import_module(below_tensorflow), name) is resolved(public), name


@pytest.mark.parametrize("module", sorted(ARGUMENTS))
def test_private_names_take_the_arguments_of_2_15(module):
    for name, arguments in ARGUMENTS[module].items():
        if name not in OTHER_ARGUMENTS:
            value = getattr(importlib.import_module(module), name)
            assert list(inspect.signature(value).parameters)[: len(arguments)] == arguments, name


def test_the_ways_to_import_them():
    names = {}
    exec(
        "import tensorflow_estimator\n"
        "import tensorflow_estimator.python.estimator.canned.dnn as dnn\n"
        "from tensorflow_estimator.python.estimator import estimator as estimator_lib\n"
        "from tensorflow_estimator.python.estimator.canned import metric_keys, prediction_keys\n"
        "from tensorflow_estimator.python.estimator.model_fn import EstimatorSpec, ModeKeys\n"
        "from tensorflow_estimator.python.estimator.api._v2 import estimator as v2\n"
        "from tensorflow_estimator.python.estimator.api._v2.estimator.export import PredictOutput\n"
        "from tensorflow_estimator.estimator import export\n"
        "from tensorflow.python.estimator.inputs import numpy_io\n"
        "from tensorflow_estimator.python.estimator.tpu.tpu_context import TPUContext\n"
        "import tensorflow.python.estimator.run_config\n"
        "loaded = tensorflow_estimator.python.estimator.gc.Path\n",
        names,
    )
    assert names["dnn"].DNNClassifier is estimator_core.v1.DNNClassifier
    assert names["dnn"].DNNClassifierV2 is estimator_core.DNNClassifier
    assert names["estimator_lib"].EstimatorV2 is estimator_core.Estimator
    assert names["metric_keys"].MetricKeys.AUC == "auc"
    assert names["prediction_keys"].PredictionKeys.CLASS_IDS == "class_ids"
    assert names["ModeKeys"] is estimator_core.ModeKeys
    assert names["v2"] is estimator_core
    assert names["PredictOutput"] is estimator_core.export.PredictOutput
    assert names["export"] is estimator_core.export
    assert names["TPUContext"].__module__ == "estimator_core.tpu.tpu_context"
    assert names["numpy_io"].numpy_input_fn is estimator_core.inputs.numpy_input_fn
    assert names["loaded"]("a", 1).export_version == 1


def test_every_name_of_every_module_is_there():
    modules = [OLD]
    while modules:
        module = importlib.import_module(modules.pop())
        for name in dir(module):
            if name.startswith("__"):
                continue
            value = getattr(module, name)
            if getattr(value, "__name__", "").startswith(OLD):
                modules.append(value.__name__)
    assert len([name for name in sys.modules if name.startswith(OLD)]) > 40


def test_what_is_not_there_is_said_with_what_is():
    with pytest.raises(ModuleNotFoundError, match=r"canned.timeseries.*it has baseline, boosted_trees, dnn"):
        importlib.import_module(f"{OLD}.canned.timeseries")
    with pytest.raises(ImportError, match=r"no 'MonitoredThing' in .*util.*It has _Dat.*, fn_args, parse"):
        exec(f"from {OLD}.util import MonitoredThing")
    util = importlib.import_module(f"{OLD}.util")
    assert not hasattr(util, "MonitoredThing")
    with pytest.raises(AttributeError, match=r"It has _Data.*, fn_args, parse_input_fn_result"):
        _ = util.MonitoredThing


def test_what_is_not_there_names_what_to_use_instead():
    with pytest.raises(ImportError, match=r"Use a CheckpointSaverListener in TrainSpec\("):
        exec(f"from {OLD}.training import _NewCheckpointListenerForEvaluate")
    with pytest.raises(AttributeError, match=r"Use .*experimental.make_early_stopping_hook\. It has"):
        _ = importlib.import_module(f"{OLD}.early_stopping")._StopOnPredicateHook
    with pytest.raises(ModuleNotFoundError, match=r"Use numpy_input_fn .* or tf.data\. Below"):
        importlib.import_module("tensorflow.python.estimator.inputs.queues.feeding_functions")


def test_the_coordinator_that_tensorflow_removed_with_tf_estimator():
    names = {}
    exec(
        "from tensorflow.python.distribute import estimator_training\n"
        "from tensorflow.python.distribute.estimator_training import PS\n"
        "from tensorflow.python.estimator.warm_starting_util import WarmStartSettings\n",
        names,
    )
    coordinator = names["estimator_training"]
    assert not coordinator.should_run_distribute_coordinator(estimator_core.RunConfig())
    assert (names["PS"], coordinator.CHIEF, coordinator.EVALUATOR) == ("ps", "chief", "evaluator")
    assert names["WarmStartSettings"] is estimator_core.WarmStartSettings


def test_a_tensorflow_estimator_that_could_not_be_imported_is_replaced(monkeypatch):
    # As TensorFlow Model Analysis brings it: a program may have tried it before.
    broken = type(sys)("tensorflow_estimator")
    sys.modules["tensorflow_estimator"] = broken
    monkeypatch.delattr(tf, "estimator")
    estimator_core.install()
    assert importlib.import_module("tensorflow_estimator.estimator") is estimator_core.v1


def test_modules_that_tensorflow_had_for_tpus():
    names = {}
    exec(
        "from tensorflow.python.tpu import tpu_config, tpu_context, tpu_estimator, util\n"
        "from tensorflow.python.tpu import async_checkpoint, error_handling\n"
        "from tensorflow.python.tpu.tpu_estimator import TPUEstimatorSpec\n",
        names,
    )
    assert names["TPUEstimatorSpec"] is estimator_core.tpu.TPUEstimatorSpec
    assert names["tpu_estimator"].TPUEstimator is estimator_core.tpu.TPUEstimator
    assert names["tpu_config"].RunConfig is estimator_core.tpu.RunConfig
    assert names["tpu_context"].TPUContext.__module__ == "estimator_core.tpu.tpu_context"
    hook = names["async_checkpoint"].AsyncCheckpointSaverHook
    assert hook is estimator_core.CheckpointSaverHook
    with pytest.raises(ImportError, match="Use TPUConfig"):
        exec("from tensorflow.python.tpu.util import parse_iterations_per_loop")
    with pytest.raises(AttributeError, match="Use the error itself"):
        names["error_handling"].ErrorRendezvous  # noqa: B018
    assert tf.compat.v1.tpu.CrossShardOptimizer  # TensorFlow's own package stays
