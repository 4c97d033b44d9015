"""The choice among several models."""

import collections
import json
import math
import time

import pytest
import tensorflow as tf

import estimator_core
from estimator_core import tf1
from pipelines.tabular.best_checkpoint import BestCheckpointExporter
from pipelines.tabular.model_selection import (
    Candidate,
    Combination,
    Training,
    can_win,
    read_candidates,
    select_model,
)
from pipelines.tabular.plan import LabelPlan

MODELS = ("boosted_trees", "wide_deep", "linear")


class Trainings:
    """Trainings of models whose loss is given; notes the models trained for the comparison."""

    def __init__(self, **losses):
        self.losses = losses
        self.trained = []
        self.steps = 2.5
        self.first_rung = None
        self.evaluated = collections.Counter()

    def __call__(self, model, model_dir, steps=None):
        def model_fn(features, labels, mode):
            del labels
            weight = tf1.get_variable("weight", [], initializer=tf.zeros_initializer())
            step = tf1.train.get_global_step()
            value = 0.0 * weight * features["x"] + self.losses[model]
            loss = tf.reduce_sum(features["x"]) * 0.0 + self.losses[model]
            if mode == estimator_core.ModeKeys.TRAIN and math.isinf(self.losses[model]):
                loss = loss - loss  # NaN
            metrics = {"average_loss": tf1.metrics.mean(loss), "auc": tf1.metrics.mean(0.75)}
            with tf.control_dependencies([weight.assign_add(1.0)]):
                train_op = step.assign_add(1)
            return estimator_core.EstimatorSpec(
                mode,
                predictions={"predictions": value[:, tf.newaxis]},
                loss=loss,
                train_op=train_op,
                eval_metric_ops=metrics,
            )

        def input_fn():
            if model_dir.endswith(model):
                self.trained.append(model)
            return tf.data.Dataset.from_tensors(({"x": [1.0]}, [0.0]))

        def eval_input_fn():
            self.evaluated[model] += 1
            return input_fn()

        def receive():
            x = tf1.placeholder(tf.float32, [None])
            return estimator_core.export.ServingInputReceiver({"x": x}, {"x": x})

        config = estimator_core.RunConfig(model_dir=model_dir, save_checkpoints_steps=3)
        return Training(
            estimator_core.Estimator(model_fn, config=config),
            estimator_core.TrainSpec(lambda: input_fn().repeat(), max_steps=2 * (steps or self.steps)),
            estimator_core.EvalSpec(
                eval_input_fn, exporters=[BestCheckpointExporter("e", receive)], throttle_secs=0
            ),
            first_rung=self.first_rung,
        )


def select(trainings, tmp_path, **settings):
    return select_model(trainings, str(tmp_path / "Format-Serving"), str(tmp_path), **settings)


def trainings_in_rungs(**losses):
    """Trainings of 24 steps, evaluated every 3 steps; the first rung has 12."""
    trainings = Trainings(**losses)
    trainings.steps, trainings.first_rung = 12, 12
    return trainings


@pytest.mark.more
def test_the_lowest_loss_wins_and_the_others_are_gone(tmp_path):
    training = select(Trainings(boosted_trees=0.4, wide_deep=0.2, linear=0.3), tmp_path)
    assert training.estimator.model_dir == str(tmp_path / "Format-Serving")
    assert training.train_spec.max_steps == 3  # the loss is always the same: the first one is kept
    assert not (tmp_path / "Format-Serving" / "export").exists()  # the Trainer exports at the end
    assert not (tmp_path / "candidates").exists()
    found = read_candidates(str(tmp_path))
    assert [one.model for one in found] == list(MODELS)
    assert [one.is_chosen for one in found] == [False, True, False]
    assert [one.loss for one in found] == pytest.approx([0.4, 0.2, 0.3])
    assert found[1].describe().startswith("wide_deep: average_loss 0.2, auc 0.75 at step 3 (")
    assert found[1].as_record()["metrics"]["auc"] == 0.75


def test_the_result_of_trees_is_told_in_trees():
    trees = Candidate("boosted_trees", 0.5, {"auc": 0.9}, 582, 6, is_dropped=True, last_step=1202)
    assert trees.describe() == (
        "boosted_trees: auc 0.9 with 97 trees (0.0 s; dropped with 200 trees, because it was too far behind)"
    )
    assert "with 1 tree (" in Candidate("boosted_trees", 0.5, {"auc": 0.9}, 6, 6).describe()
    assert (
        Candidate("linear", 0.5, {"auc": 0.9}, 40, folds=3).describe().endswith("at step 40 (0.0 s, 3 folds)")
    )


@pytest.mark.more
def test_what_was_trained_before_an_interruption_is_not_trained_again(tmp_path):
    losses = {"boosted_trees": 0.4, "wide_deep": 0.2, "linear": 0.3}

    class Interrupted(Trainings):
        def __call__(self, model, model_dir, steps=None):
            if model == "linear":
                raise KeyboardInterrupt
            return super().__call__(model, model_dir, steps)

    first = Interrupted(**losses)
    with pytest.raises(KeyboardInterrupt):
        select(first, tmp_path)
    assert set(first.trained) == {"boosted_trees", "wide_deep"}
    second = Trainings(**losses)
    training = select(second, tmp_path)
    assert set(second.trained) == {"linear"}
    assert training.train_spec.max_steps == 3
    third = Trainings(**losses)
    select(third, tmp_path)
    assert third.trained == []


@pytest.mark.more
def test_a_model_that_is_too_far_behind_is_dropped(tmp_path):
    """Each model would train for 24 steps, and be evaluated every 3 steps with the same loss."""
    trainings = Trainings(boosted_trees=0.2, wide_deep=0.3, linear=0.1)
    trainings.steps = 12
    select(trainings, tmp_path)
    trees, deep, linear = read_candidates(str(tmp_path))
    assert [one.is_dropped for one in (trees, deep, linear)] == [False, True, False]
    assert linear.is_chosen
    assert "; dropped" in deep.describe()
    assert "; dropped" not in linear.describe()
    assert trainings.evaluated["wide_deep"] <= 5
    assert trainings.evaluated["linear"] >= 8


@pytest.mark.more
def test_a_model_that_is_too_far_behind_at_the_first_rung_goes_no_further(tmp_path):
    trainings = trainings_in_rungs(boosted_trees=0.2, wide_deep=0.3, linear=0.1)
    training = select(trainings, tmp_path)
    trees, deep, linear = read_candidates(str(tmp_path))
    assert [one.last_step for one in (trees, deep, linear)] == [12, 12, 24]
    assert [one.is_dropped for one in (trees, deep, linear)] == [True, True, False]
    assert not any(one.is_paused for one in (trees, deep, linear))
    assert [one.expected for one in (trees, deep)] == pytest.approx([0.2, 0.3])
    assert linear.is_chosen
    assert "; dropped at step 12, because it was too far behind" in trees.describe()
    assert trainings.evaluated["boosted_trees"] == trainings.evaluated["wide_deep"] == 4
    assert trainings.evaluated["linear"] == 9  # at the end, the best checkpoint once more
    assert training.train_spec.max_steps == 3  # of the best checkpoint: the loss never falls


@pytest.mark.more
def test_a_model_whose_loss_may_be_higher_by_chance_goes_on(tmp_path):
    """Two standard errors of the mean of 16 rows are half of it: 0.15 with 0.1 as the lowest loss."""
    trainings = trainings_in_rungs(boosted_trees=0.14, wide_deep=0.16, linear=0.1)
    select(trainings, tmp_path, held_out_rows=16)
    trees, deep, _ = read_candidates(str(tmp_path))
    assert (trees.is_dropped, trees.last_step) == (False, 24)
    assert (deep.is_dropped, deep.last_step) == (True, 12)


@pytest.mark.more
def test_trainings_go_on_from_their_first_rung_after_an_interruption(tmp_path):
    losses = {"boosted_trees": 0.1, "wide_deep": 0.3, "linear": 0.12}
    first = trainings_in_rungs(**losses)
    prepared = []

    def interrupted(model, *args):
        prepared.append(model)
        if len(prepared) == 5:
            raise KeyboardInterrupt
        return first(model, *args)

    with pytest.raises(KeyboardInterrupt):
        select(interrupted, tmp_path, held_out_rows=16)
    assert prepared == [*MODELS, "boosted_trees", "linear"]
    assert first.evaluated == {"boosted_trees": 9, "wide_deep": 4, "linear": 4}
    *_, linear = read_candidates(str(tmp_path))
    assert (linear.is_paused, linear.last_step) == (True, 12)
    again = trainings_in_rungs(**losses)
    select(again, tmp_path, held_out_rows=16)
    assert again.evaluated == {"linear": 5}
    trees, deep, linear = read_candidates(str(tmp_path))
    assert [one.last_step for one in (trees, deep, linear)] == [24, 12, 24]
    assert trees.is_chosen


@pytest.mark.more
def test_a_training_that_ends_before_the_first_rung_has_ended(tmp_path):
    trainings = trainings_in_rungs(boosted_trees=0.3, wide_deep=0.2, linear=0.1)
    trainings.steps = 3
    select(trainings, tmp_path)
    assert [one.last_step for one in read_candidates(str(tmp_path))] == [6, 6, 6]


@pytest.mark.parametrize(
    ("losses", "to_beat", "expected"),
    [
        # From step 200 to 400, the loss fell by 0.1. There is one more doubling to 800 steps.
        ([0.9, 0.7, 0.65, 0.6], 0.49, False),
        ([0.9, 0.7, 0.65, 0.6], 0.51, True),
        ([0.9, 0.7, 0.7, 0.7], 0.69, False),
        ([0.9, 0.7, 0.6], 0.1, True),  # too early
        ([0.9, 0.7, 0.3, 0.4], 0.35, True),  # it is in front
    ],
)
def test_a_model_can_win_if_another_doubling_helps_as_much_as_the_last(losses, to_beat, expected):
    steps = dict(zip((100, 200, 300, 400), losses, strict=False))
    assert can_win(steps, 800, to_beat) is expected


@pytest.mark.more
def test_the_best_trees_are_grown_anew_and_go_on_where_they_were_interrupted(tmp_path):
    losses = {"boosted_trees": 0.1, "wide_deep": 0.2, "linear": 0.3}
    training = select(Trainings(**losses), tmp_path)
    assert training.estimator.latest_checkpoint() is None
    assert training.train_spec.max_steps == 6  # the steps asked for with step 3, see `Trainings`
    assert not (tmp_path / "candidates").exists()
    training.estimator.train(training.train_spec.input_fn, max_steps=4)
    again = Trainings(**losses)
    training = select(again, tmp_path)
    assert again.trained == []
    assert training.estimator.latest_checkpoint().endswith("model.ckpt-4")


@pytest.mark.more
@pytest.mark.parametrize("losses", [(0.1, 0.2, 0.3), (0.2, 0.1, 0.3)])
def test_an_interruption_before_the_others_are_gone(tmp_path, monkeypatch, losses):
    losses = dict(zip(MODELS, losses, strict=True))
    with monkeypatch.context() as patch:

        def killed(*unused, **unused_too):
            raise KeyboardInterrupt

        patch.setattr(tf.io.gfile, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            select(Trainings(**losses), tmp_path)
    again = Trainings(**losses)
    expected = 6 if losses["boosted_trees"] == 0.1 else 3
    assert select(again, tmp_path).train_spec.max_steps == expected
    assert again.trained == []
    assert not (tmp_path / "candidates").exists()


@pytest.mark.more
def test_a_model_whose_loss_is_no_number_is_not_taken(tmp_path):
    training = select(Trainings(boosted_trees=math.inf, wide_deep=math.nan, linear=9.0), tmp_path)
    assert training.train_spec.max_steps == 3
    trees, deep, linear = read_candidates(str(tmp_path))
    assert "NaN loss" in trees.failure
    assert deep.failure
    assert linear.is_chosen
    assert json.loads((tmp_path / "model_selection.json").read_text())[0]["loss"] is None


def test_no_model_can_be_taken(tmp_path):
    with pytest.raises(RuntimeError, match=r"None of the models could be trained\. boosted_trees"):
        select(Trainings(boosted_trees=math.inf, wide_deep=math.inf, linear=math.inf), tmp_path)


@pytest.mark.more
def test_what_a_training_without_a_comparison_has_left_gives_way(tmp_path):
    old = tmp_path / "Format-Serving"
    old.mkdir()
    (old / "checkpoint").write_text("of another model")
    training = select(Trainings(boosted_trees=0.4, wide_deep=0.2, linear=0.3), tmp_path)
    assert training.estimator.latest_checkpoint().endswith("model.ckpt-3")
    assert (old / "best").is_dir()


@pytest.mark.more
def test_a_time_limit_ends_the_trainings_of_the_first_fold(tmp_path):
    trainings = Trainings(boosted_trees=0.3, wide_deep=0.2, linear=0.1)
    trainings.steps = 10_000_000
    label = LabelPlan(column="y", problem_type="regression", values="number")
    combination = Combination(label, folds=3, time_limit=3.0)
    begin = time.monotonic()
    training = select(trainings, tmp_path, combination=combination)
    assert time.monotonic() - begin < 60
    found = read_candidates(str(tmp_path))
    assert [one.folds for one in found] == [1, 1, 1]
    assert [one.is_chosen for one in found] == [False, False, True]
    assert all(0 < one.last_step < 20_000_000 for one in found)
    assert training.train_spec.max_steps == found[2].step
