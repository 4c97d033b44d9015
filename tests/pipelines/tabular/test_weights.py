"""Weights of rows and classes: the plan, its errors, and models that learn from weighted rows."""

import lightgbm
import numpy as np
import pytest
import tensorflow as tf
from sklearn.utils.class_weight import compute_class_weight

from pipelines.errors import BadInputError
from pipelines.tabular.estimators import build_estimator
from pipelines.tabular.held_out import predict_held_out
from pipelines.tabular.plan import WEIGHT_KEY, WeightPlan
from pipelines.tabular.preprocessing import preprocessing_fn
from tests.pipelines.tabular.one_number_one_city import BINARY, REGRESSION, FakeTransform, make_plan
from tests.pipelines.tabular.test_infer import X, plan_for

LABELS = ["late", "on time", "on time"] * 20
W = [number % 4 + 0.5 for number in range(60)]
WEIGHT, BALANCED = "data.weight=w", "trainer.class_weights=balanced"


def table(**changes):
    return {"x": X[:60], "w": W, "y": LABELS, **changes}


def test_balanced_classes_are_those_of_scikit_learn(tmp_path):
    classes, labels, weights = np.array(["late", "on time"]), np.array(LABELS), np.array(W)
    (tmp_path / "weighted").mkdir()
    plan = plan_for(tmp_path, {"x": X[:60], "y": LABELS}, "y", BALANCED)
    expected = compute_class_weight("balanced", classes=classes, y=labels)  # 60 / (2 * 20), 60 / (2 * 40)
    assert plan.weight.classes == pytest.approx(expected)
    assert plan.weight.classes == (1.5, 0.75)
    assert (plan.weight.column, plan.weight.scale, plan.label.majority_share) == (None, 1.0, 0.5)
    weighted = plan_for(tmp_path / "weighted", table(), "y", BALANCED, WEIGHT)
    totals = [weights[labels == name].sum() for name in classes]
    assert weighted.weight.classes == pytest.approx([sum(totals) / 2 / total for total in totals])
    assert weighted.weight.scale == pytest.approx(60 / weights.sum())
    assert weighted.label.majority_share == pytest.approx(0.5)


def test_the_weight_is_no_feature_and_the_label_is_described_by_weight(tmp_path):
    """The last row has no label, so its weight does not matter."""
    settings = (WEIGHT, 'trainer.class_weights={late = 3, "on time" = 1}')
    columns = table(w=[*W, "?"], x=X[:61], y=[*LABELS, ""])
    plan = plan_for(tmp_path, columns, "y", *settings)
    assert plan.columns == ("y", "x")
    assert plan.read_columns == ("y", "x", "w")
    late = np.array(LABELS) == "late"
    products = np.array(W) * np.where(late, 3, 1)
    assert plan.label.majority_share == pytest.approx(products[late].sum() / products.sum())
    assert plan.weight.scale == pytest.approx(60 / products.sum())
    assert plan.notes()[0].endswith("; rows are weighted by column 'w' times class (late 3, on time 1)")


def test_the_moments_of_a_number_are_weighted(tmp_path):
    """Weights are amounts with a comma here."""
    amounts = ["1,5", "0,25", "3,75"] * 20
    labels = [number**1.5 for number in range(60)]
    plan = plan_for(tmp_path, {"x": X[:60], '"w"': [f'"{a}"' for a in amounts], "y": labels}, "y", WEIGHT)
    weights = np.array([1.5, 0.25, 3.75] * 20)
    mean = np.average(labels, weights=weights)
    assert plan.label.mean == pytest.approx(mean)
    assert plan.label.stddev == pytest.approx(np.average((labels - mean) ** 2, weights=weights) ** 0.5)
    assert plan.weight.scale == pytest.approx(60 / weights.sum())


NEXT = [0.5] * 58


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        (table(), ["data.weight=ww"], r"data.weight = 'ww': there is no such column\. Did you mean 'w'\?"),
        (table(), ["data.weight=y"], "it is the label"),
        (table(weight_of_row=W), [WEIGHT], "line 1: the column 'weight_of_row' .*Rename"),
        (table(w=[1, "heavy", *NEXT]), [WEIGHT], "line 3, column 'w': the weight 'heavy' is not a number"),
        (table(w=[1, "", *NEXT]), [WEIGHT], "line 3, column 'w': the weight is missing"),
        (table(w=[1, "-0.5", *NEXT]), [WEIGHT], "line 3, column 'w': the weight '-0.5' is not a number"),
        (table(w=[1, "inf", *NEXT]), [WEIGHT], "line 3, column 'w': the weight 'inf' is not"),
        (table(w=[1, "1e39", *NEXT]), [WEIGHT], "line 3, column 'w': the weight '1e39' is not"),
        # The first row has no label, so its weight does not matter.
        (table(w=["", "", *NEXT], y=["", *LABELS[1:]]), [WEIGHT], "line 3, column 'w'"),
        (table(w=[0] * 60), [WEIGHT], "all weights are 0"),
        (
            table(),
            ["trainer.class_weights={late=1, in_time=2}"],
            "no class 'in_time'. Did you mean 'on time'",
        ),
        (table(), ["trainer.class_weights={late=1}"], "has no weight for 'on time'"),
        (table(), ["trainer.class_weights={late=0}"], "weight of the class 'late' must be a number above 0"),
        (table(), ['trainer.class_weights={late="5"}'], "weight of the class 'late' must be a number above"),
        (
            table(),
            ["trainer.class_weights=equal"],
            'class_weights = .*: give "balanced", or a weight for each',
        ),
        (table(y=X[:60]), [BALANCED], r"label 'y' is a number \(regression\)"),
        (table(w=[0, 1, 1] * 20), [WEIGHT, BALANCED], "weights of the class 'late' add up to 0"),
        (table(), [WEIGHT, "module.file=m.py"], "data.weight = 'w' is for the generic models"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path, columns, settings, message):
    with pytest.raises(BadInputError, match=message):
        plan_for(tmp_path, columns, "y", *settings)


def test_transform_multiplies_the_weights_of_rows_and_classes():
    weight = WeightPlan(column="w", classes=(3.0, 0.5), scale=0.25)
    plan = make_plan(BINARY).model_copy(update={"numeric": (), "categorical": (), "weight": weight})
    inputs = {"y": tf.constant(["yes", "no", "yes"]), "w": tf.constant([2.0, 4.0, 0.0])}
    outputs = preprocessing_fn(inputs, plan.feature_config())
    assert outputs[WEIGHT_KEY].numpy().tolist() == [2 * 0.5 / 4, 4 * 3 / 4, 0]
    cells = tf.sparse.from_dense(tf.constant([["1,5"], [""]]))
    outputs = preprocessing_fn({**inputs, "w": cells, "y": inputs["y"][:2]}, plan.feature_config())
    assert np.isnan(outputs[WEIGHT_KEY]).all()


def rows(label, size=90):
    """Returns transformed features, with weights 1, 2 and 3, and labels."""
    draw = np.random.default_rng(8)
    x = draw.normal(size=(size, 1)).astype(np.float32)
    features = {
        "numeric": x,
        "numeric_bucket": (x > 0).astype(np.int64),
        "category_0": draw.integers(0, 3, size),
        WEIGHT_KEY: np.arange(size) % 3 + 1.0,
    }
    signal = x[:, 0] + draw.normal(size=size) > 0
    labels = np.where(signal, b"yes", b"no") if label is BINARY else 1_000 + 100 * x[:, 0] * signal
    return features, labels


def copied(features, labels):
    """Returns each row as many times as its weight says, with a weight of 1."""
    counts = features[WEIGHT_KEY].astype(int)
    copies = {name: np.repeat(values, counts, axis=0) for name, values in features.items()}
    return {**copies, WEIGHT_KEY: np.ones(counts.sum())}, np.repeat(labels, counts)


def train(model, label, folder, data, **changes):
    """Returns an Estimator that has learned from the rows, all in one batch, and its metrics on them."""
    features, labels = data
    scaled = {**features, WEIGHT_KEY: (features[WEIGHT_KEY] / features[WEIGHT_KEY].mean()).astype(np.float32)}
    plan = make_plan(label, **changes).model_copy(update={"weight": WeightPlan(column="w")})
    estimator = build_estimator(model, plan, FakeTransform(tf.string), str(folder))

    def input_fn():
        batch = tf.data.Dataset.from_tensors((scaled, labels))
        return batch if model == "boosted_trees" else batch.repeat()

    estimator.train(input_fn, max_steps=30)
    return estimator, estimator.evaluate(input_fn, steps=1), scaled


@pytest.mark.more
@pytest.mark.parametrize("label", [BINARY, REGRESSION])
def test_a_row_of_weight_3_is_three_rows_to_a_linear_model(tmp_path, label):
    data = rows(label)
    estimators, losses = [], []
    for name, part in (("weighted", data), ("copied", copied(*data))):
        estimator, metrics, _ = train("linear", label, tmp_path / name, part)
        estimators.append(estimator)
        losses.append(metrics["average_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    names = [name for name in estimators[0].get_variable_names() if name.startswith("linear/")]
    assert len(names) > 2
    for name in names:
        first, second = (estimator.get_variable_value(name) for estimator in estimators)
        assert first == pytest.approx(second, abs=1e-4)
        assert np.any(first)


@pytest.mark.more
def test_trees_are_those_of_lightgbm_with_the_same_weights(tmp_path):
    features, labels = rows(BINARY)
    trees = {"n_trees": 5, "max_depth": 3, "learning_rate": 0.3, "min_node_examples": 5}
    estimator, metrics, scaled = train("boosted_trees", BINARY, tmp_path, (features, labels), trees=trees)
    matrix = np.concatenate([features["numeric"], np.eye(3)[features["category_0"]]], axis=1)
    settings = {
        "objective": "binary", "num_leaves": 8, "max_depth": 3, "learning_rate": 0.3, "min_data_in_leaf": 5,
        "min_sum_hessian_in_leaf": 0, "verbosity": -1, "num_threads": 1, "max_bin": 255, "min_data_in_bin": 1,
        "enable_bundle": False,
    }  # fmt: skip
    is_yes = labels == b"yes"
    data = lightgbm.Dataset(matrix, is_yes, weight=scaled[WEIGHT_KEY], params=settings)
    expected = lightgbm.train(settings, data, 5).predict(matrix)
    held_out = predict_held_out(estimator, lambda: tf.data.Dataset.from_tensors((scaled, labels)))
    assert held_out.predictions[:, 1] == pytest.approx(expected, abs=1e-5)
    assert held_out.weights.tolist() == scaled[WEIGHT_KEY].tolist()
    losses = -np.log(np.where(is_yes, expected, 1 - expected))
    assert metrics["average_loss"] == pytest.approx(np.average(losses, weights=features[WEIGHT_KEY]), 1e-4)


def test_rows_without_weights_count_as_1_and_those_of_weight_0_not_at_all():
    class Model:
        def predict(self, input_fn, yield_single_examples):
            yield {"predictions": np.array([[0.5], [1.5]])}

    data = tf.data.Dataset.from_tensors(({"x": [1.0, 2.0]}, [3.0, 4.0]))
    assert predict_held_out(Model(), lambda: data).weights.tolist() == [1, 1]
    data = tf.data.Dataset.from_tensors(({WEIGHT_KEY: [0.0, 2.0]}, [3.0, 4.0]))
    held_out = predict_held_out(Model(), lambda: data)
    assert [values.tolist() for values in vars(held_out).values()] == [[4], [[1.5]], [2]]
