"""Checks of the arguments that a caller passes to an Estimator."""

import os
import pathlib

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.spec import arguments, types


def test_the_model_dir_of_either_place():
    config = est.RunConfig(model_dir="a", save_summary_steps=7)
    found = arguments.config_with_model_dir(config, None)
    assert (found.model_dir, found.save_summary_steps) == ("a", 7)
    assert config.session_config is None
    assert found.session_config.allow_soft_placement
    assert arguments.config_with_model_dir(config, "a").model_dir == "a"
    found = arguments.config_with_model_dir(est.RunConfig(save_summary_steps=7), pathlib.Path("b"))
    assert (found.model_dir, found.save_summary_steps) == ("b", 7)
    with pytest.raises(ValueError, match=r"'c'.*'a'"):
        arguments.config_with_model_dir(config, "c")


def test_without_a_model_dir_there_is_a_temporary_one():
    first = arguments.config_with_model_dir(None, "").model_dir
    second = arguments.config_with_model_dir(None, None).model_dir
    assert os.path.isdir(first)
    assert first != second


@pytest.mark.parametrize("config", [{}, "model_dir", object()])
def test_a_config_is_a_run_config(config):
    with pytest.raises(ValueError, match="must be an instance of RunConfig"):
        arguments.config_with_model_dir(config, None)


def test_steps_become_whole_and_are_above_zero():
    for value, steps in ((None, None), (1e4, 10000), (12.5, 13), (float("inf"), None)):
        assert arguments.checked_steps("steps", value) == steps
    for value in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=f"max_steps > 0. Received: max_steps={value}"):
            arguments.checked_steps("max_steps", value)
    with pytest.raises(TypeError, match=r"steps must be a number. Received: steps='3'"):
        arguments.checked_steps("steps", "3")


def test_hooks_are_hooks():
    hook = est.StopAtStepHook(last_step=3)
    assert arguments.checked_instances(None, "hooks") == ()
    assert arguments.checked_instances(iter([hook]), "hooks") == (hook,)
    with pytest.raises(TypeError, match="All hooks must be SessionRunHook instances"):
        arguments.checked_instances([hook, "no hook"], "hooks")


def test_features_are_a_dict():
    features = {"x": 1}
    assert arguments.checked_features(features) is features
    with pytest.raises(ValueError, match="should be a dictionary"):
        arguments.checked_features([1])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(None, {"a": 1, "b": 2}), ("b", {"b": 2}), (["b", "a"], {"a": 1, "b": 2}), (["a", "c"], {"a": 1})],
)
def test_selected_predictions_are_those_of_known_keys(keys, expected):
    assert arguments.selected_predictions({"a": 1, "b": 2}, keys) == expected


def test_keys_that_select_nothing_are_refused():
    with pytest.raises(ValueError, match="at least one output from"):
        arguments.selected_predictions({"a": 1}, ["c"])
    with pytest.raises(ValueError, match="predict_keys argument is not valid"):
        arguments.selected_predictions(3.0, ["c"])
    assert arguments.selected_predictions(3.0, None) == 3.0


def model_fn(features):
    del features


class WithOwnTrain(est.Estimator):
    """Overrides a member of the Estimator."""

    def train(self, *args, **kwargs):
        return "own"


_SIZE = tf.feature_column.numeric_column("size")
# As printed by tf.estimator 2.15.
_MEMBERS = """
    _actual_eval _actual_train_model_distributed _add_meta_graph_for_mode _call_input_fn _call_model_fn
    _call_model_fn_eval _call_model_fn_eval_distributed _convert_eval_steps_to_hooks
    _convert_train_steps_to_hooks _create_global_step _evaluate_build_graph _evaluate_run
    _extract_batch_length _extract_keys _get_features_and_labels_from_input_fn
    _get_features_from_input_fn _get_iterator_from_input_fn _maybe_warm_start _train_model
    _train_model_default _train_model_distributed _train_with_estimator_spec
    _train_with_estimator_spec_distributed _validate_features_in_predict_input config eval_dir evaluate
    experimental_export_all_saved_models export_saved_model export_savedmodel get_variable_names
    get_variable_value model_dir params predict train
"""


@pytest.mark.parametrize("name", _MEMBERS.split())
def test_a_subclass_that_overrides_a_member_is_refused(name):
    subclass = type("Own", (est.Estimator,), {name: property(lambda self: None)})
    with pytest.raises(ValueError, match=rf"cannot override members.*Own'> does override \['{name}'\]"):
        subclass(model_fn)


@pytest.mark.parametrize(
    ("base", "make"),
    [
        (est.LinearRegressor, lambda own: own([_SIZE])),
        (est.v1.DNNClassifier, lambda own: own([2], [_SIZE])),
        (WithOwnTrain, lambda own: own(model_fn)),
        (est.tpu.TPUEstimator, lambda own: own(model_fn, config=est.tpu.RunConfig(), use_tpu=False)),
    ],
)
def test_so_is_a_subclass_of_another_estimator(base, make):
    with pytest.raises(ValueError, match=r"does override \['evaluate'\]"):
        make(type("Own", (base,), {"evaluate": lambda self: None}))


@pytest.mark.parametrize(
    ("base", "members"),
    [
        (est.Estimator, {"latest_checkpoint": lambda self: None, "model_fn": None}),
        (est.Estimator, {"predictor": lambda self: None, "score": lambda self: None}),
        (est.Estimator, {"train": est.Estimator.train}),
        (est.Estimator, {"_assert_members_are_not_overridden": lambda self: 1, "train": None}),
        (WithOwnTrain, {}),
    ],
)
def test_other_members_may_be_defined(base, members):
    """2.15 accepts these."""
    type("Own", (base,), members)(model_fn)
    type("TPUEstimator", (est.Estimator,), {"train": None})(model_fn)


def test_what_hooks_and_exporters_need_of_an_estimator_is_there():
    for name in ("model_dir", "config", "eval_dir", "export_saved_model"):
        assert hasattr(types.EstimatorLike, name)
        assert hasattr(est.Estimator, name)
    assert est.SessionRunHook is types.Hook
    assert est.CheckpointSaverListener is types.SavingListener


@pytest.mark.parametrize("nothing", [lambda _: None, staticmethod(lambda _: None)])
def test_programs_switch_the_check_off(monkeypatch, nothing):
    """As AdaNet, EasyRec and Horovod's Estimators do."""
    monkeypatch.setattr(est.Estimator, "_assert_members_are_not_overridden", nothing)
    assert WithOwnTrain(model_fn).train() == "own"
