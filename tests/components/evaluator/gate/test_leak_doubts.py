import pytest

from components.evaluator.gate.leak_doubts import dominant_column, leak_doubts


def importance(growth, loss=0.1, trivial_loss=0.5, reach=0.1):
    """Importances whose intervals reach a tenth of the growth to either side."""
    features = [
        {"feature": name, "growth": one, "low": one - reach * abs(one), "high": one + reach * abs(one)}
        for name, one in growth.items()
    ]
    return {"features": features, "loss": loss, "trivial_loss": trivial_loss}


LEAK = {"refunded": 2.2, "a": 0.1, "b": 0.05, "c": -0.3, "label": 0.0}  # 1.98 > 10 * 0.15


def test_a_model_that_lives_on_one_column_is_doubted():
    assert dominant_column(importance(LEAK)) == "refunded"
    (doubt,) = leak_doubts(importance(LEAK), accepted=("a",))
    assert doubt.startswith("column 'refunded' may leak the label: ")
    assert "grows from 0.1 by 2.2, and for all other columns together by 0.15" in doubt
    assert '[columns] "refunded" = "ignore"' in doubt
    assert leak_doubts(importance(LEAK), accepted=("refunded",)) == ()


@pytest.mark.parametrize(
    "honest",
    [
        importance({**LEAK, "d": 0.05}),  # 1.98 < 10 * 0.2
        importance(LEAK, reach=0.35),  # 1.43 < 1.5: may be chance
        importance(LEAK, loss=0.26),  # the model is not good enough to have seen the label
        importance({"balance": 2.2, "a": 0.1, "b": 0.0, "label": 0.0}),  # too few columns to compare with
        {**importance(LEAK), "trivial_loss": None},
        {**importance(LEAK), "left_out": ["width"]},  # it may be as important
        importance({**LEAK, "refunded": 0.0, "a": 0.0, "b": 0.0}),
        {"features": [], "loss": 0.1, "trivial_loss": 0.5},
    ],
    ids=(
        "redundant",
        "chance",
        "weak model",
        "few columns",
        "no constant",
        "not all measured",
        "nothing matters",
        "none",
    ),
)
def test_an_honest_model_is_not(honest):
    assert dominant_column(honest) is None
    assert leak_doubts(honest, accepted=()) == ()


def test_an_evaluation_of_an_older_version_has_no_loss_of_a_constant():
    old = importance(LEAK)
    del old["trivial_loss"]
    assert dominant_column(old) is None
