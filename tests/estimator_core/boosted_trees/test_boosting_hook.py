"""Steps, hooks and checkpoints of a training: trees have layers of n_batches_per_layer steps."""

import logging

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import experimental
from estimator_core.boosted_trees.forest_variables import read_checkpoint
from tests.estimator_core.programs import assert_same, saved_steps, scalars_of, values_of
from tests.estimator_core.tree_programs import Table, columns, config

TABLE = Table()


def classifier(model_dir, n_batches_per_layer=2, n_trees=5, **settings):
    return est.BoostedTreesClassifier(
        columns(), n_batches_per_layer, n_trees=n_trees, max_depth=3, config=config(model_dir, **settings)
    )


def input_fn():
    return TABLE.input_fn(batch_size=200)()


def same_models(one, other):
    assert_same(values_of(one), values_of(other))


class EveryStep(est.SessionRunHook):
    """A hook that is called at each step, as it declares no interval."""

    def __init__(self):
        self.seen = []

    def begin(self):
        self._fetches = (tf.compat.v1.train.get_global_step(), tf.compat.v1.get_collection("losses"))

    def after_run(self, run_context, run_values):
        step, (loss,) = run_context.session.run(self._fetches)
        self.seen.append((int(step), float(loss)))


@pytest.mark.more
def test_training_ends_by_itself_after_all_trees(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    model = classifier(tmp_path).train(input_fn)
    assert model.get_variable_value("global_step") == 5 * 3 * 2
    assert read_checkpoint(model.latest_checkpoint()).forest.num_trees == 5
    assert "Read the training data: 400 rows of 5 columns in 2 batches" in caplog.text
    newest = model.latest_checkpoint()
    model.train(input_fn)
    assert "All trees are finished already: 5." in caplog.text
    assert model.get_variable_value("global_step") == 30
    more = classifier(tmp_path, n_trees=6).train(input_fn)
    assert more.get_variable_value("global_step") == 36
    assert newest != more.latest_checkpoint()


@pytest.mark.more
@pytest.mark.parametrize(
    ("steps", "finished", "layers"), [(1, 0, 0), (2, 0, 1), (7, 1, 0), (17, 2, 2), (29, 4, 2)]
)
def test_training_ends_at_the_step_that_it_is_told(tmp_path, steps, finished, layers):
    model = classifier(tmp_path / "a").train(input_fn, max_steps=steps)
    assert model.get_variable_value("global_step") == steps
    state = read_checkpoint(model.latest_checkpoint())
    assert state.finished == finished
    assert state.forest.num_trees == finished + (layers > 0)
    if layers:
        assert state.forest.depth[state.forest.root[-1] :].max() == layers
    model.train(input_fn, steps=1)
    assert model.get_variable_value("global_step") == steps + 1


@pytest.mark.more
def test_steps_in_parts_grow_the_same_forest(tmp_path):
    whole = classifier(tmp_path / "whole").train(input_fn)
    parts = classifier(tmp_path / "parts")
    for steps in (7, 1, 9, 4):
        parts.train(input_fn, steps=steps)
    classifier(tmp_path / "parts").train(input_fn)
    same_models(parts, whole)


@pytest.mark.more
def test_a_hook_without_an_interval_sees_each_step_and_changes_nothing(tmp_path):
    hook = EveryStep()
    watched = classifier(tmp_path / "watched").train(input_fn, hooks=[hook])
    same_models(watched, classifier(tmp_path / "whole").train(input_fn))
    assert [step for step, _ in hook.seen] == list(range(1, 31))
    losses = [loss for _, loss in hook.seen]
    assert losses[0] == pytest.approx(np.log(2))
    # The loss is that of finished trees, before the step: it changes every six steps.
    for tree in range(5):
        assert len(set(losses[6 * tree : 6 * tree + 6])) == 1
    assert losses[6] < losses[5]
    assert sorted(losses, reverse=True) == losses


def test_checkpoints_hold_the_trees_of_their_step(tmp_path):
    model = classifier(tmp_path, save_checkpoints_steps=8, keep_checkpoint_max=10).train(input_fn)
    assert saved_steps(tmp_path) == [0, 8, 16, 24, 30]
    whole = read_checkpoint(model.latest_checkpoint()).forest
    for step in saved_steps(tmp_path):
        state = read_checkpoint(f"{tmp_path}/model.ckpt-{step}")
        assert 6 * state.finished + state.steps_in_tree == step
        found, expected = (forest.trees(0, state.finished).value for forest in (state.forest, whole))
        np.testing.assert_array_equal(found, expected)


def test_an_early_stopping_hook_ends_the_training(tmp_path):
    model = classifier(tmp_path, save_checkpoints_steps=6)
    answers = iter([False, True])
    hook = experimental.make_early_stopping_hook(model, lambda: next(answers), None, 12)
    model.train(input_fn, hooks=[hook])
    assert model.get_variable_value("global_step") == 13  # it asks at step 1


def test_the_loss_is_written_once(tmp_path):
    classifier(tmp_path).train(input_fn)
    assert [tag for tag in sorted(scalars_of(tmp_path)) if "loss" in tag] == ["loss"]


@pytest.mark.more
def test_an_evaluation_during_training_sees_the_trees(tmp_path):
    model = classifier(tmp_path)
    model.train(input_fn, hooks=[experimental.InMemoryEvaluatorHook(model, input_fn, every_n_iter=12)])
    assert model.get_variable_value("global_step") == 30
    losses = scalars_of(tmp_path / "eval")["average_loss"]
    assert sorted(losses) == [0, 12, 24, 30]
    assert losses[0] == pytest.approx(np.log(2))
    assert sorted(losses.values(), reverse=True) == [losses[step] for step in (0, 12, 24, 30)]


@pytest.mark.more
def test_train_and_evaluate_evaluates_each_checkpoint(tmp_path):
    model = classifier(tmp_path, save_checkpoints_steps=12)
    evaluation, _ = est.train_and_evaluate(
        model,
        est.TrainSpec(input_fn, max_steps=30),
        est.EvalSpec(input_fn, start_delay_secs=0, throttle_secs=0),
    )
    assert evaluation["global_step"] == 30
    assert set(scalars_of(tmp_path / "eval")["average_loss"]) == {12, 24, 30}


def nan_when_sure(labels, logits):
    """The squared error, and NaN once a logit is above 1.5; its gradient is a number."""
    is_sure = tf.reduce_max(tf.abs(logits)) > 1.5
    return tf.square(logits - labels) + tf.stop_gradient(tf.where(is_sure, np.nan, 0.0))


@pytest.mark.more
@pytest.mark.parametrize(
    ("head", "learning_rate"),
    [
        (est.RegressionHead(loss_fn=nan_when_sure), 0.1),
        # Once the square of a logit is no float32 any more, it is inf, and 0 * inf is NaN.
        (est.RegressionHead(weight_column="weight"), 1e7),
    ],
)
def test_a_nan_loss_ends_training_at_the_first_step_of_its_tree(tmp_path, head, learning_rate):
    features = {**TABLE.features, "weight": np.float32(np.arange(400) >= 50)}
    labels = TABLE.score.astype(np.float32)

    def error(name, hooks=(), **settings):
        model = est.BoostedTreesEstimator(
            columns(),
            2,
            head,
            n_trees=20,
            max_depth=3,
            learning_rate=learning_rate,
            config=config(tmp_path / name, log_step_count_steps=1000, **settings),
        )
        with pytest.raises(est.NanLossDuringTrainingError) as raised:
            model.train(TABLE.input_fn(labels, features, 200), hooks=hooks)
        assert model.get_variable_value("global_step") == 0
        return raised.value.global_step

    hook = EveryStep()
    step = error("each", [hook])
    assert [step for step, loss in hook.seen if np.isnan(loss)] == [step]
    assert step % 6 == 1
    assert step > 7
    assert error("many", save_summary_steps=1000) == step
    assert error("by_sevens", save_summary_steps=7) == step


def test_no_data_makes_no_step(tmp_path, caplog):
    model = classifier(tmp_path).train(lambda: input_fn().take(0))
    assert "no steps" in caplog.text
    assert model.get_variable_value("global_step") == 0


@pytest.mark.more
def test_warm_start_grows_on_top_of_another_model(tmp_path):
    first = classifier(tmp_path / "first", n_trees=2).train(input_fn)
    warm = est.BoostedTreesClassifier(
        columns(), 2, n_trees=3, max_depth=3, model_dir=tmp_path / "warm", warm_start_from=first.model_dir
    ).train(input_fn, steps=8)
    warm.train(input_fn)
    assert warm.get_variable_value("global_step") == 18
    state = read_checkpoint(warm.latest_checkpoint())
    expected = read_checkpoint(classifier(tmp_path / "whole").train(input_fn).latest_checkpoint())
    assert (state.finished, state.warm_started) == (5, 2)
    np.testing.assert_array_equal(state.forest.value, expected.forest.value)
    assert first.get_variable_value("global_step") == 12
