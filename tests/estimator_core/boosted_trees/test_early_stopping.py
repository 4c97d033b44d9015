"""Early stopping of trees by held-out rows, compared with LightGBM's own."""

import lightgbm
import numpy as np
import pytest

import estimator_core as est
from estimator_core.boosted_trees.early_stopping import Validation
from estimator_core.boosted_trees.forest_variables import read_checkpoint
from estimator_core.boosted_trees.model_text import forest_from_text
from estimator_core.boosted_trees.training_data import TrainingData
from estimator_core.experimental import TreesEarlyStopping
from tests.estimator_core.programs import assert_same, values_of
from tests.estimator_core.tree_programs import Table, columns, config, parameters

TABLE = Table()
HELD_OUT = np.arange(400) % 4 == 1
N_TREES = 300


def classifier(model_dir, patience=20, n_trees=N_TREES, early_stopping=None, **settings):
    return est.BoostedTreesClassifier(
        columns(),
        2,
        n_trees=n_trees,
        max_depth=3,
        config=config(model_dir, **settings),
        early_stopping=early_stopping or TreesEarlyStopping("is_held_out", patience),
    )


def input_fn(mask=HELD_OUT):
    return TABLE.input_fn(features={**TABLE.features, "is_held_out": mask.astype(np.float32)}, batch_size=200)


def library_model(patience, *callbacks):
    matrix, labels = TABLE.matrix, TABLE.labels
    settings = parameters(metric="binary_logloss")
    data = lightgbm.Dataset(matrix[~HELD_OUT], labels[~HELD_OUT], params=settings)
    held_out = data.create_valid(matrix[HELD_OUT], labels[HELD_OUT])
    callback = lightgbm.early_stopping(patience, verbose=False)
    return lightgbm.train(settings, data, N_TREES, [held_out], callbacks=[callback, *callbacks])


@pytest.mark.more
def test_the_trees_are_those_of_the_library_up_to_the_lowest_loss(tmp_path):
    model = classifier(tmp_path).train(input_fn())
    expected = library_model(patience=20)
    assert 10 < expected.best_iteration < N_TREES - 20
    state = read_checkpoint(model.latest_checkpoint())
    assert state.finished == expected.best_iteration
    assert model.get_variable_value("boosted_trees/finished") == expected.best_iteration
    text = expected.model_to_string(num_iteration=expected.best_iteration)
    assert_same(vars(state.forest), vars(forest_from_text(text)))
    # Six steps for each tree until the loss was not lower for twenty trees.
    assert model.get_variable_value("global_step") == 6 * (expected.best_iteration + 20)
    held_out = TABLE.input_fn(
        TABLE.labels[HELD_OUT], {key: value[HELD_OUT] for key, value in TABLE.features.items()}
    )
    loss = model.evaluate(held_out)["average_loss"]
    assert loss == pytest.approx(expected.best_score["valid_0"]["binary_logloss"], rel=1e-6)


def test_iterations_are_judged_when_the_training_may_end():
    """Losses fall for three iterations, then rise; a tree of the library's adds to the scores."""
    losses = iter([0.5, 0.4, 0.3, 0.6, 0.7, 0.2])
    rows = TrainingData(np.zeros([2, 1], np.float32), None, None)
    validation = Validation(rows, lambda logits: next(losses), patience=2)
    validation.start(np.zeros(1), 0, 1)
    assert validation.last == 2
    validation.judge(None, [None, None])
    assert (validation.best, validation.last, validation.iterations) == (2, 4, 2)
    validation.judge(None, [None, None])
    assert (validation.best, validation.last) == (3, 5)
    validation.judge(None, [None])
    assert (validation.best, validation.last, validation.iterations) == (3, 5, 5)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_scores_are_those_of_the_library(classes):
    """Thirteen iterations, more than are predicted at a time, and one that adds nothing."""
    kind = {"objective": "multiclass", "num_class": 3} if classes == 3 else {}
    labels = TABLE.three_classes if classes == 3 else TABLE.labels
    settings = parameters(**kind)
    data = lightgbm.Dataset(TABLE.matrix[~HELD_OUT], labels[~HELD_OUT], params=settings)
    booster = lightgbm.train(settings, data, 13)
    dimension = 3 if classes == 3 else 1
    rows = TABLE.matrix[HELD_OUT]
    scores = []
    validation = Validation(TrainingData(rows, None, None), lambda logits: scores.append(logits) or 0.0, 50)
    validation.start(np.zeros(dimension), 0, 1)
    validation.judge(booster, [*range(13), None])
    assert len(scores) == 14
    for count in (1, 10, 11, 13):
        expected = booster.predict(rows, raw_score=True, num_iteration=count)
        np.testing.assert_allclose(scores[count - 1], expected.reshape(-1, dimension), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(scores[13], scores[12])


def test_growing_is_not_interrupted_for_each_loss(tmp_path, monkeypatch):
    judged = []
    monkeypatch.setattr(Validation, "judge", lambda _, booster, indices: judged.append(len([*indices])))
    classifier(tmp_path, patience=20).train(input_fn())
    assert judged == [20]  # nothing was lower, as nothing was judged


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("steps", "trees"), [(None, None), (6 * 9 + 2, 9)])
def test_each_loss_is_reported_once(tmp_path, steps, trees):
    found = {}

    def report(iterations, loss):
        assert iterations == len(found) + 1
        found[iterations] = loss

    stopping = TreesEarlyStopping("is_held_out", 20, report)
    model = classifier(tmp_path, early_stopping=stopping).train(input_fn(), steps=steps)
    expected = {}
    best = library_model(20, lightgbm.record_evaluation(expected)).best_iteration
    losses = expected["valid_0"]["binary_logloss"]
    assert len(found) == (trees or best + 20) == model.get_variable_value("global_step") // 6
    assert [*found.values()] == pytest.approx(losses[: len(found)], rel=1e-6)


@pytest.mark.more
def test_a_training_that_has_ended_stays_so(tmp_path):
    model = classifier(tmp_path).train(input_fn())
    path = model.latest_checkpoint()
    classifier(tmp_path).train(input_fn())
    assert model.latest_checkpoint() == path


@pytest.mark.more
@pytest.mark.parametrize("trees", [3, 60])
def test_a_training_in_parts_ends_with_the_same_trees(tmp_path, trees):
    """The second part begins before the lowest loss, or after it."""
    whole = classifier(tmp_path / "whole", patience=60).train(input_fn())
    parts = classifier(tmp_path / "parts", patience=60).train(input_fn(), steps=6 * trees + 2)
    assert read_checkpoint(parts.latest_checkpoint()).finished == trees  # nothing is removed
    classifier(tmp_path / "parts", patience=60).train(input_fn())
    assert_same(values_of(parts), values_of(whole))


def test_the_last_tree_ends_the_training_too(tmp_path):
    best = library_model(patience=20).best_iteration
    model = classifier(tmp_path, n_trees=best + 5).train(input_fn())
    assert model.get_variable_value("global_step") == 6 * (best + 5)
    assert model.get_variable_value("boosted_trees/finished") == best


@pytest.mark.more
def test_trees_of_a_warm_start_stay(tmp_path):
    first = est.BoostedTreesClassifier(columns(), 2, n_trees=4, max_depth=3, model_dir=tmp_path / "a")
    first.train(input_fn())
    warm = est.BoostedTreesClassifier(
        columns(),
        2,
        n_trees=200,
        max_depth=3,
        model_dir=str(tmp_path / "b"),
        warm_start_from=first.model_dir,
        early_stopping=TreesEarlyStopping("is_held_out", 5),
    ).train(input_fn())
    finished = warm.get_variable_value("boosted_trees/finished")
    assert finished > 4
    assert warm.get_variable_value("global_step") == 6 * (finished + 5 - 4)


@pytest.mark.more
def test_heads_with_words_as_labels_end_at_their_lowest_loss(tmp_path):
    """The loss of several heads looks words up in tables, which a graph has once."""
    binary = est.BinaryClassHead(label_vocabulary=["no", "yes"], name="one")
    three = est.MultiClassHead(3, label_vocabulary=["a", "b", "c"], name="two")
    losses = []
    model = est.BoostedTreesEstimator(
        columns(),
        1,
        est.MultiHead([binary, three]),
        n_trees=60,
        max_depth=3,
        config=config(tmp_path),
        early_stopping=TreesEarlyStopping("is_held_out", 5, lambda _, loss: losses.append(loss)),
    )
    labels = {
        "one": np.array(["no", "yes"])[TABLE.labels],
        "two": np.array(["a", "b", "c"])[TABLE.three_classes],
    }
    features = {**TABLE.features, "is_held_out": HELD_OUT.astype(np.float32)}
    model.train(TABLE.input_fn(labels, features, batch_size=400))
    best = int(np.argmin(losses))
    assert model.get_variable_value("boosted_trees/finished") == best + 1 < 55
    held_out = TABLE.input_fn(
        {name: values[HELD_OUT] for name, values in labels.items()},
        {name: values[HELD_OUT] for name, values in TABLE.features.items()},
        batch_size=400,
    )
    assert model.evaluate(held_out)["loss"] == pytest.approx(losses[best], rel=1e-6)


def test_without_rows_to_validate_on_all_trees_are_grown(tmp_path, caplog):
    estimator = classifier(tmp_path, n_trees=7).train(input_fn(np.zeros(400)))
    assert "No row is held out: 'is_held_out' is 0 in all of them" in caplog.text
    assert estimator.get_variable_value("boosted_trees/finished") == 7


def test_a_validation_column_that_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"is missing.*'is_held_out', features \['a', 'b', 'word'\]"):
        classifier(tmp_path).train(TABLE.input_fn())


@pytest.mark.parametrize("patience", [0, 2.5, True])
def test_patience_is_a_number_of_iterations(patience):
    with pytest.raises(ValueError, match="Received: patience="):
        TreesEarlyStopping("is_held_out", patience)
