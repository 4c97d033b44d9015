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
        pytest.param(importance({**LEAK, "d": 0.05}), id="redundant"),  # 1.98 < 10 * 0.2
        pytest.param(importance(LEAK, reach=0.35), id="chance"),  # 1.43 < 1.5
        pytest.param(importance(LEAK, loss=0.26), id="too weak a model to have seen the label"),
        pytest.param(importance({"balance": 2.2, "a": 0.1, "b": 0.0, "label": 0.0}), id="few columns"),
        pytest.param({**importance(LEAK), "trivial_loss": None}, id="no constant"),
        pytest.param({"features": importance(LEAK)["features"], "loss": 0.1}, id="older version"),
        pytest.param({**importance(LEAK), "left_out": ["width"]}, id="not all measured"),
        pytest.param(importance({**LEAK, "refunded": 0.0, "a": 0.0, "b": 0.0}), id="nothing matters"),
        pytest.param({"features": [], "loss": 0.1, "trivial_loss": 0.5}, id="none"),
    ],
)
def test_an_honest_model_is_not(honest):
    assert dominant_column(honest) is None
    assert leak_doubts(honest, accepted=()) == ()
