"""A model_dir whose newest checkpoint, or the file that names it, is broken. Each step halves 2 - weight."""

import os
import pathlib

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.checkpoints import latest
from estimator_core.hooks.stop_at_checkpoint_step import StopAtCheckpointStepHook
from estimator_core.training.continuous_evaluation import evaluate_continuously
from tests.estimator_core.programs import saved_steps

_INDEX, _DATA = "model.ckpt-4.index", "model.ckpt-4.data-00000-of-00001"


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setattr(latest, "_WAIT_SECS", 0)


@pytest.fixture
def estimator(make_estimator, input_fn):
    """Has checkpoints of steps 0, 2 and 4."""
    return make_estimator(save_checkpoints_steps=2).train(input_fn, steps=4)


def file_of(estimator, name):
    return pathlib.Path(estimator.model_dir) / name


def cut(file, size):
    file.write_bytes(file.read_bytes()[:size])


def weight(steps):
    return 2 - 2 / 2**steps


def receiver_fn():
    return est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})


BROKEN_STATES = {
    "half-written": lambda file: cut(file, 25),
    "empty": lambda file: file.write_bytes(b""),
    "of zeros": lambda file: file.write_bytes(bytes(100)),
    "no text": lambda file: file.write_bytes(b"\xff\xfe"),
    "something else": lambda file: file.write_text("12"),
}


@pytest.mark.parametrize("name", BROKEN_STATES)
def test_without_a_state_that_can_be_read_the_highest_step_is_the_newest(name, estimator, caplog):
    state = file_of(estimator, "checkpoint")
    BROKEN_STATES[name](state)
    newest = f"{estimator.model_dir}/model.ckpt-4"
    assert estimator.latest_checkpoint() == newest
    told = f"{state} can't be read. Using the newest complete checkpoint: {newest}"
    assert caplog.messages.count(told) == 1
    cut(file_of(estimator, _DATA), 5)
    assert estimator.latest_checkpoint() == f"{estimator.model_dir}/model.ckpt-2"


def test_a_state_that_is_missing_loses_no_training(estimator, input_fn, caplog):
    file_of(estimator, "checkpoint").unlink()
    assert estimator.train(input_fn, steps=1).get_variable_value("weight") == weight(5)
    assert "checkpoint is missing. Using the newest complete checkpoint" in caplog.text


BROKEN_CHECKPOINTS = {
    "no index": lambda estimator: file_of(estimator, _INDEX).unlink(),
    "a cut index": lambda estimator: cut(file_of(estimator, _INDEX), 50),
    "no data": lambda estimator: file_of(estimator, _DATA).unlink(),
    "cut data": lambda estimator: cut(file_of(estimator, _DATA), 5),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BROKEN_CHECKPOINTS)
def test_training_goes_on_from_the_newest_whole_checkpoint(name, estimator, input_fn, caplog):
    BROKEN_CHECKPOINTS[name](estimator)
    estimator.train(input_fn, max_steps=4)  # saves the broken one anew
    assert "model.ckpt-4." in caplog.text
    assert "Using the newest complete checkpoint: " in caplog.text
    assert estimator.latest_checkpoint() == f"{estimator.model_dir}/model.ckpt-4"
    assert estimator.get_variable_value("weight") == weight(4)
    assert saved_steps(estimator.model_dir) == [0, 2, 4]
    caplog.clear()
    assert estimator.train(input_fn, steps=1).evaluate(input_fn, steps=1)["global_step"] == 5
    assert "complete checkpoint" not in caplog.text


def test_a_model_dir_that_is_moved_goes_on_though_its_state_has_absolute_paths(estimator, input_fn, tmp_path):
    names = [f"{estimator.model_dir}/model.ckpt-{step}" for step in (0, 2, 4)]
    tf.compat.v1.train.update_checkpoint_state(estimator.model_dir, names[-1], names)
    moved = tmp_path / "moved"
    os.rename(estimator.model_dir, moved)
    model = est.Estimator(estimator.model_fn, str(moved)).train(input_fn, steps=1)
    assert model.get_variable_value("global_step") == 5
    assert f'"{tmp_path}' not in (moved / "checkpoint").read_text()


def exported(estimator, base):
    path = estimator.export_saved_model(str(base), receiver_fn()).decode()
    serve = tf.saved_model.load(path).signatures["serving_default"]
    return serve(x=tf.constant([1.0]))["y"].numpy().item()


def evaluated_by_the_task(estimator, input_fn):
    spec = est.EvalSpec(input_fn, steps=1, start_delay_secs=0)
    metrics, _ = evaluate_continuously(estimator, spec, None, sleep=lambda secs: None, is_over=lambda: True)
    return metrics["global_step"]


def warm(estimator, input_fn, model_dir):
    def model_fn(features, labels, mode):
        spec = estimator.model_fn(features, labels, mode, estimator.config)
        return spec._replace(train_op=tf.compat.v1.train.get_global_step().assign_add(1))

    model = est.Estimator(model_fn, str(model_dir), warm_start_from=estimator.model_dir)
    return model.train(input_fn, steps=1).get_variable_value("weight")


def test_all_that_reads_checkpoints_takes_the_newest_whole_one(estimator, input_fn, tmp_path):
    with estimator.predictor(receiver_fn()) as predict:
        assert predict({"x": [1.0]})["y"] == weight(4)
        cut(file_of(estimator, _DATA), 5)
        assert predict({"x": [1.0]})["y"] == weight(2)
    assert estimator.evaluate(input_fn, steps=1)["loss"] == (2 - weight(2)) ** 2
    assert next(iter(estimator.predict(input_fn)))["y"] == weight(2)
    assert exported(estimator, tmp_path / "exports") == weight(2)
    assert evaluated_by_the_task(estimator, input_fn) == 2
    assert warm(estimator, input_fn, tmp_path / "warm") == weight(2)
    assert estimator.get_variable_value("weight") == weight(2)


def test_a_worker_goes_on_until_the_last_step_is_in_a_whole_checkpoint(estimator):
    cut(file_of(estimator, _DATA), 5)
    waits = []
    hook = StopAtCheckpointStepHook(estimator.model_dir, last_step=4, wait=waits.append)
    hook.after_run(None, tf.compat.v1.train.SessionRunValues(3, None, None))
    assert waits == [30]


def test_without_any_whole_checkpoint_nothing_begins_anew(estimator, input_fn, tmp_path):
    for step in (0, 2, 4):
        cut(file_of(estimator, f"model.ckpt-{step}.index"), 50)
    before = sorted(os.listdir(estimator.model_dir))
    for use in (
        lambda: estimator.train(input_fn, steps=1),
        lambda: estimator.train(input_fn, max_steps=9),
        lambda: estimator.evaluate(input_fn, steps=1),
        lambda: next(iter(estimator.predict(input_fn))),
        lambda: exported(estimator, tmp_path / "exports"),
        lambda: estimator.predictor(receiver_fn()),
        lambda: evaluated_by_the_task(estimator, input_fn),
        lambda: warm(estimator, input_fn, tmp_path / "warm"),
    ):
        with pytest.raises(ValueError, match=r"No checkpoint in .* is complete") as error:
            use()
        for step in (0, 2, 4):
            assert f"model.ckpt-{step}.index can't be read" in str(error.value)
        assert "to begin at step 0" in str(error.value)
    assert sorted(os.listdir(estimator.model_dir)) == before


def test_a_model_dir_without_a_finished_save_begins_at_step_0(make_estimator, input_fn):
    estimator = make_estimator()
    assert estimator.latest_checkpoint() is None
    folder = pathlib.Path(estimator.model_dir)
    folder.mkdir()
    # A process that was killed in its first save leaves this; and there may be files of something else.
    (folder / "model.ckpt-0.data-00000-of-00001").write_bytes(b"")
    (folder / "vocabulary-3.index").write_bytes(b"")
    assert estimator.latest_checkpoint() is None
    assert estimator.train(input_fn, steps=1).get_variable_value("global_step") == 1


def test_a_checkpoint_that_is_saved_anew_is_waited_for(estimator, monkeypatch, caplog):
    whole = file_of(estimator, _INDEX).read_bytes()
    cut(file_of(estimator, _INDEX), 50)
    monkeypatch.setattr(latest.time, "sleep", lambda secs: file_of(estimator, _INDEX).write_bytes(whole))
    assert estimator.latest_checkpoint() == f"{estimator.model_dir}/model.ckpt-4"
    assert caplog.text == ""
