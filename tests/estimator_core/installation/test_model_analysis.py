"""`tfma.export` after install(): a package stands in for TFMA, which the core does not need."""

import importlib
import sys

import pytest
import tensorflow as tf

import estimator_core
from estimator_core.installation import model_analysis
from tests.estimator_core.programs import example

SPEC = {"x": tf.io.FixedLenFeature([1], tf.float32), "y": tf.io.FixedLenFeature([1], tf.float32)}


@pytest.fixture
def package(uninstalled, tmp_path, monkeypatch):
    """The name of an importable package like TFMA, without an `export`."""
    (tmp_path / "like_model_analysis" / "eval_saved_model").mkdir(parents=True)
    (tmp_path / "like_model_analysis" / "__init__.py").write_text("VALUE = 3\n")
    (tmp_path / "like_model_analysis" / "eval_saved_model" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(model_analysis, "PACKAGE", "like_model_analysis")
    yield "like_model_analysis"
    for name in [name for name in sys.modules if name.startswith("like_model_analysis")]:
        del sys.modules[name]


@pytest.mark.parametrize("is_imported_before", [False, True])
def test_export_is_there_however_the_package_is_imported(package, is_imported_before):
    if is_imported_before:
        importlib.import_module(package)
    estimator_core.install()
    found = importlib.import_module(package)
    assert found.VALUE == 3
    assert found.export.EvalInputReceiver is estimator_core.export.EvalInputReceiver
    assert importlib.import_module(f"{package}.export") is found.export
    names = {}
    exec(f"from {package}.eval_saved_model import export", names)
    assert names["export"] is found.export


def test_an_export_of_its_own_stays(package):
    found = importlib.import_module(package)
    found.export = "its own"
    estimator_core.install()
    assert found.export == "its own"


@pytest.mark.parametrize("with_serving", [False, True])
def test_models_for_evaluation(make_estimator, input_fn, tmp_path, with_serving):
    estimator = make_estimator()
    estimator.train(input_fn, steps=1)  # the weight is 1

    def eval_input_receiver_fn():
        parse = model_analysis.build_parsing_eval_input_receiver_fn(SPEC, "y")()
        assert set(parse.features) == {"x", "y"}
        return parse

    def serving_input_receiver_fn():
        x = tf.compat.v1.placeholder(tf.float32, [None, 1])
        return estimator_core.export.ServingInputReceiver({"x": x}, x)

    exported = model_analysis.export_eval_savedmodel(
        estimator,
        str(tmp_path / "exports"),
        eval_input_receiver_fn,
        serving_input_receiver_fn if with_serving else None,
    )
    model = tf.saved_model.load(exported.decode(), tags=["eval"])
    outputs = model.signatures["eval"](examples=tf.constant([example(x=3.0, y=1.0)]))
    assert float(outputs["loss"]) == pytest.approx((3.0 - 1.0) ** 2)
    if with_serving:
        tf.saved_model.load(exported.decode(), tags=["serve"])
