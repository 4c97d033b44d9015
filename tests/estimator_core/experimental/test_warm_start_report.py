"""The report of an Estimator; its possible lines are in checkpoints/test_warm_start_report.py."""

import pytest

import estimator_core as est
from estimator_core.experimental import warm_start_report


@pytest.fixture
def old(make_estimator, input_fn):
    return make_estimator().train(input_fn, steps=3)


def starts_of(report):
    return {line.split()[0]: line.split()[2] for line in str(report).splitlines()[2:]}


def test_it_tells_what_training_would_do_and_leaves_no_trace(old, input_fn, tmp_path):
    model_dir = tmp_path / "new"
    new = est.Estimator(old.model_fn, str(model_dir), warm_start_from=old.model_dir)
    report = warm_start_report(new, input_fn)
    assert starts_of(report)["weight"] == "loaded"
    assert f"{old.model_dir}/model.ckpt-3" in str(report)
    assert not model_dir.exists() or not list(model_dir.iterdir())


def test_other_settings_may_be_tried(old, make_estimator, input_fn, tmp_path):
    new = est.Estimator(
        old.model_fn, str(tmp_path / "new"),
        warm_start_from=str(tmp_path / "not there"),
    )  # fmt: skip
    report = warm_start_report(new, input_fn, old.model_dir)
    assert starts_of(report)["weight"] == "loaded"


def test_without_settings_there_is_nothing_to_report(old, input_fn):
    with pytest.raises(ValueError, match="warm_start_from=None"):
        warm_start_report(old, input_fn)
