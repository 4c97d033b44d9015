import base64

import numpy as np
import pytest
import tensorflow as tf

import pipelines
from pipelines.data.formats.cell_format import FILE, CellFormat, formats_to_json
from pipelines.data.formats.number_format import POINT
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.model import Model
from tests.components.conftest import example

ROWS = [{"x": 1.5, "n": 1, "city": "Oslo"}, {"x": None, "n": 3}]
BACKGROUND = [{"x": 1.0, "n": 0, "city": "Rome"}, {"x": 0.0, "n": 2, "city": "Rome"}]
# Compared with the means 0.5 of x, 1 of n and 0 of Oslo, whose sum is 1.5.
BY_HAND = {"x": [1.0, -0.5], "n": [0.0, 2.0], "city": [1.0, 0.0]}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "sign"), [("classifier", 1), ("negated", -1), ("examples only", 1)])
def test_log_odds_of_the_second_class_by_hand(push, name, sign):
    model = pipelines.load(push(name, 1))
    explanation = model.explain(ROWS, BACKGROUND)
    assert explanation.classes.tolist() == ["yes", "yes"]
    np.testing.assert_allclose(explanation.base, [sign * 1.5] * 2, atol=1e-6)
    assert explanation.contributions.keys() == BY_HAND.keys()
    for column, values in BY_HAND.items():
        np.testing.assert_allclose(explanation.contributions[column], sign * np.array(values), atol=1e-6)
    probability = model.predict(ROWS)["probability_yes"].astype(np.float64)
    np.testing.assert_allclose(explanation.score, np.log(probability / (1 - probability)), rtol=1e-5)
    no = model.explain(ROWS, BACKGROUND, of_class="no")
    np.testing.assert_allclose(no.contributions["n"], [0, sign * -2.0], atol=1e-6)


@pytest.mark.parametrize("name", ["regressor", "raw"])
def test_a_number_in_its_units(push, name):
    explanation = pipelines.load(push(name, 1)).explain([{**ROWS[0], "n": 4}], BACKGROUND)
    assert explanation.classes is None
    assert (explanation.base.tolist(), explanation.score.tolist()) == ([1.5], [6.5])
    assert {name: values.tolist() for name, values in explanation.contributions.items()} == {
        "x": [1.0],
        "n": [3.0],
        "city": [1.0],
    }
    assert {name: values.tolist() for name, values in explanation.strongest(2).items()} == {
        "base": [1.5],
        "column_1": ["n"],
        "contribution_1": [3.0],
        "column_2": ["city"],  # as strong as x, and before it in the alphabet
        "contribution_2": [1.0],
        "contribution_others": [1.0],
    }
    assert explanation.strongest(9)["contribution_others"].tolist() == [0.0]


class _ThreeClasses(tf.Module):
    """Log-odds are interactions: logits x y, y and 0 of the classes a, b and c."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.float32)])
    def predict(self, x, y):
        probabilities = tf.nn.softmax(tf.stack([x * y, y, tf.zeros_like(x)], axis=1))
        classes = tf.tile([["a", "b", "c"]], [tf.size(x), 1])
        return {"probabilities": probabilities, "all_classes": classes}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.float32)])
    def pair(self, x, y):
        return {"sum": x + y, "product": x * y}


def test_of_several_classes_the_predicted_one_and_other_outputs_not(tmp_path):
    module = _ThreeClasses()
    tf.saved_model.save(module, str(tmp_path / "classes"), {"serving_default": module.predict})
    model = Model(tmp_path / "classes")
    rows, background = {"x": [3, 0, -1], "y": [2, 1.5, 4]}, {"x": [1, 2], "y": [-1, 0.5]}
    explanation = model.explain(rows, background)
    assert explanation.classes.tolist() == model.predict(rows)["class"].tolist() == ["a", "b", "b"]

    def log_odds(x, y, index):
        scores = np.exp([x * y, y, 0])
        return np.log(scores[index] / (scores.sum() - scores[index]))

    for row, index in enumerate((0, 1, 1)):
        x, y = rows["x"][row], rows["y"][row]
        by_order = []
        for other_x, other_y in ((1, -1), (2, 0.5)):
            before, after = log_odds(other_x, other_y, index), log_odds(x, y, index)
            first, last = log_odds(x, other_y, index) - before, after - log_odds(other_x, y, index)
            by_order.append((first + last) / 2)
        assert explanation.contributions["x"][row] == pytest.approx(np.mean(by_order), rel=1e-5)
        total = explanation.base[row] + sum(values[row] for values in explanation.contributions.values())
        assert total == pytest.approx(log_odds(x, y, index), rel=1e-5)
    with pytest.raises(BadInputError, match=r"'d' is not a class of this model\. Its classes: a, b, c"):
        model.explain(rows, background, of_class="d")
    tf.saved_model.save(module, str(tmp_path / "pair"), {"serving_default": module.pair})
    with pytest.raises(BadInputError, match="predicts product, sum: only a class or one number"):
        Model(tmp_path / "pair").explain(rows, background)


@pytest.mark.more
def test_rows_that_a_run_has_left_in_the_root_are_the_background(push):
    root = push("regressor", 1)
    model = pipelines.load(root)
    with pytest.raises(BadInputError, match="and none were found for this model"):
        model.explain(ROWS)
    rows = [example({"x": 1.0, "city": "7 Rome", "id": 7}), example({"n": 2, "city": "Rome"})]
    left = {"background": [base64.b64encode(row).decode() for row in rows]}
    Root(root).details("run-1").write("serving_check", left)
    found, expected = model.explain(ROWS), model.explain(ROWS, BACKGROUND)
    for name, values in expected.contributions.items():
        np.testing.assert_array_equal(found.contributions[name], values)
    with pytest.raises(BadInputError, match="and none were found for this model"):
        model.explain(ROWS, [])
    file = Root(root).details("run-1").folder / "serving_check.json"
    content = file.read_text()
    file.write_text(content[:-1])
    with pytest.raises(BadInputError, match="and none were found for this model"):
        model.explain(ROWS)
    file.write_text(content)
    extra = model.folder / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / FILE).write_text(formats_to_json({"city": CellFormat(number=POINT)}))
    model = pipelines.load(root)  # takes no "7 Rome", but such rows were learned from
    assert model.explain([{"x": 1.5}]).base.tolist() == [1.5]
