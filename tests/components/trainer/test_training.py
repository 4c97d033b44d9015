import pytest

import estimator_core
from components.trainer.training import TrainingSpec


def input_fn():
    raise NotImplementedError


def returned(tmp_path, **changes):
    exporter = estimator_core.FinalExporter("serving", input_fn)
    return {
        "estimator": estimator_core.Estimator(lambda features, labels: None, str(tmp_path)),
        "train_spec": estimator_core.TrainSpec(input_fn, max_steps=1),
        "eval_spec": estimator_core.EvalSpec(input_fn, exporters=exporter),
        "eval_input_receiver_fn": input_fn,
        **changes,
    }


def test_the_classic_dict_is_taken_apart_and_what_it_lacks_is_named(tmp_path):
    classic = returned(tmp_path)
    spec = TrainingSpec.parse({**classic, "more": 1})
    assert spec.estimator is classic["estimator"]
    assert spec.eval_input_receiver_fn is input_fn
    del classic["eval_spec"], classic["train_spec"]
    with pytest.raises(ValueError, match="lacks 'train_spec', 'eval_spec'"):
        TrainingSpec.parse(classic)
    with pytest.raises(TypeError, match=r"must return a dict.*Received: NoneType"):
        TrainingSpec.parse(None)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("estimator", "model", "an estimator_core.Estimator"),
        ("train_spec", None, "an estimator_core.TrainSpec"),
        ("eval_input_receiver_fn", 5, "a function"),
    ],
)
def test_a_wrong_type_is_named(tmp_path, key, value, wanted):
    with pytest.raises(TypeError, match=f"'{key}' must be {wanted}.*Received.*{value}"):
        TrainingSpec.parse(returned(tmp_path, **{key: value}))


def test_an_eval_spec_without_exporter_is_refused_before_training(tmp_path):
    with pytest.raises(ValueError, match=r"no exporter.*FinalExporter"):
        TrainingSpec.parse(returned(tmp_path, eval_spec=estimator_core.EvalSpec(input_fn)))
