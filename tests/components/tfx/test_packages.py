import json
import subprocess
import sys

import pytest

from components.tfx import packages as tfx_packages

# Imports the modules that nearly all need, and then each one in a process forked off that.
PROGRAM = """
import importlib, json, os, sys
import components
import tensorflow

def imported(name):
    reader, writer = os.pipe()
    if not os.fork():
        importlib.import_module(name)
        os.write(writer, json.dumps([m for m in WATCHED if m in sys.modules]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        return json.loads(stream.read() or '"it failed"')

WATCHED = json.loads(sys.argv[1])
found = {"components.pusher.executor": imported("components.pusher.executor")}
import apache_beam
found |= {name: imported(name) for name in json.loads(sys.argv[2])}
print(json.dumps(found))
"""

CLOUD = ["tfx.v1", "google.cloud.aiplatform", "kfp", "kubernetes", "docker", "tensorflow_serving"]
TFDV, TRANSFORM = "tensorflow_data_validation", "tensorflow_transform"
METRICS = "tensorflow_model_analysis.metrics"
WATCHED = [*CLOUD, TFDV, TRANSFORM, METRICS, "apache_beam", "estimator_core", "lightgbm"]
# Besides Beam; nothing of CLOUD in any.
IMPORTED = {
    "components.example_gen.executor": [],
    "components.statistics_gen.executor": [TFDV],
    "tfx.components.schema_gen.executor": [TFDV],
    "tfx.components.schema_gen.import_schema_gen.executor": [TFDV],
    "components.example_validator.executor": [TFDV],
    "components.transform.executor": [TFDV, TRANSFORM],
    "components.trainer.executor": ["estimator_core"],
    "components.evaluator.executor": [METRICS, "estimator_core"],  # its gateway to tf.compat.v1
    "components.serving_check.executor": [],
}


@pytest.fixture(scope="module")
def found():
    """The watched modules that each executor imports."""
    arguments = [json.dumps(WATCHED), json.dumps([*IMPORTED])]
    printed = subprocess.check_output([sys.executable, "-c", PROGRAM, *arguments], text=True)
    return json.loads(printed.splitlines()[-1])


@pytest.mark.parametrize("executor", IMPORTED)
def test_what_an_executor_imports_and_what_it_does_not(found, executor):
    assert set(found[executor]) == {*IMPORTED[executor], "apache_beam"}


def test_the_pusher_needs_no_beam(found):
    assert found["components.pusher.executor"] == []


def check(*lines):
    """Runs a program after `import components`; its assertions hold."""
    code = "\n".join(["import sys, components", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("proto", ["config_pb2", "metrics_for_slice_pb2", "validation_result_pb2"])
def test_protos_of_tfma_load_by_themselves(proto):
    check(
        f"import tensorflow_model_analysis.proto.{proto}",
        "assert not {'apache_beam', 'tensorflow'} & set(sys.modules)",
    )


@pytest.mark.more
def test_the_names_of_the_packages_are_found_when_they_are_asked_for():
    check(
        "import tensorflow_model_analysis as tfma, tfx.components",
        "assert 'apache_beam' not in sys.modules",
        "assert hasattr(tfma, 'proto') and 'apache_beam' not in sys.modules",
        "assert not hasattr(tfma, '__wrapped__') and 'apache_beam' not in sys.modules",
        "from tensorflow_model_analysis.api import model_eval_lib",
        "assert tfma.run_model_analysis is model_eval_lib.run_model_analysis",
        "assert tfma.EvalConfig(model_specs=[tfma.ModelSpec(label_key='y')])",
        "assert tfma.__version__.startswith('0.')",
        "assert not hasattr(tfma, 'no_such_name')",
        "assert 'tfx.components.infra_validator.component' not in sys.modules",
        "from tfx.components import *",
        "from tfx.components.statistics_gen.component import StatisticsGen as Expected",
        "assert StatisticsGen is tfx.components.StatisticsGen is Expected",
        "assert 'tfx.components.infra_validator.component' in sys.modules",
    )


@pytest.mark.more
def test_tensorflow_comes_without_what_keras_needs_rarely():
    check(
        "import tensorflow as tf",
        "assert not {'IPython', 'matplotlib', 'sklearn'} & set(sys.modules)",
        "import keras",
        "assert keras.saving.get_registered_name(tf.keras.Model) == 'Model'",
        "assert callable(keras.visualization.plot_image_gallery)",
        "assert callable(keras.wrappers.SKLearnClassifier)",
        "assert 'sklearn' in sys.modules",
    )


@pytest.mark.more
def test_packages_of_a_few_metrics_and_clients_load_when_a_name_is_asked_for():
    check(
        "from tensorflow_model_analysis import metrics",
        "rare = {'nltk.tokenize', 'scipy.stats._stats_py', 'google.cloud.bigquery.client', 'jedi'}",
        "assert not rare & set(sys.modules), rare & set(sys.modules)",
        "import nltk, scipy.stats",
        "assert nltk.edit_distance('rain', 'shine') == 3",
        "assert scipy.stats.norm.cdf(0.0) == 0.5",
        "assert nltk.tokenize.WhitespaceTokenizer().tokenize('a b') == ['a', 'b']",
        "from nltk.stem import PorterStemmer",
        "assert PorterStemmer().stem('running') == 'run'",
        "from google.cloud.bigquery import TableReference",
        "import IPython",
        "assert IPython.version_info",
        "assert IPython.get_ipython() is None",
        "rouge = metrics.rouge.Rouge('rouge1').computations()[0].combiner",
        "assert rouge.scorer.score('a b', 'a b')['rouge1'].fmeasure == 1.0",
    )


@pytest.mark.more
def test_beam_and_matplotlib_ask_for_a_shell_without_an_import_of_ipython():
    check(
        "from apache_beam.utils.interactive_utils import is_in_ipython",
        "assert not is_in_ipython()",
        "from matplotlib.figure import Figure",
        "Figure()",
        "import IPython",
        "assert IPython.version_info[0] >= 7 and IPython.get_ipython() is None",
        "assert 'IPython.terminal' not in sys.modules",
        "from IPython.core.interactiveshell import InteractiveShell",
        "shell = InteractiveShell.instance()",
        "assert is_in_ipython()",
    )


def test_installing_twice_adds_one_finder():
    finders = len(sys.meta_path)
    tfx_packages.install()
    assert len(sys.meta_path) == finders
