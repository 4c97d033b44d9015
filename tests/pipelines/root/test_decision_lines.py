import pytest

from pipelines.root.decision_lines import decision_lines
from tests.pipelines.run_records import make_record

MORE = "To find more, set"


def lines(tp, fp, fn, tn, config=None, threshold=0.5):
    counts = {"true_positives": tp, "false_positives": fp, "false_negatives": fn, "true_negatives": tn}
    confusion = {"classes": ["in time", "late"], "threshold": threshold, **counts}
    return list(decision_lines(make_record(config=config or {}, confusion=confusion)))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((300, 5, 700, 2_000), []),  # a third of the rows
        (
            (26, 5, 974, 20_000),
            [
                "26 of 1,000 'late' rows are found (recall 2.6 %); 26 of 31 rows predicted as 'late' are "
                f"right (precision 83.9 %). {MORE} trainer.decide, such as {{recall = 0.8}}"
            ],
        ),
        (
            (0, 0, 10, 90),  # a tenth of the rows
            [f"0 of 10 'late' rows are found (recall 0 %). {MORE} trainer.decide, such as {{recall = 0.8}}"],
        ),
        ((0, 0, 11, 89), []),
        (
            (95, 4, 0, 1),  # the negative class is the rare one
            [
                "1 of 5 'in time' rows are found (recall 20 %); 1 of 1 rows predicted as 'in time' are right "
                f'(precision 100 %). {MORE} data.positive = "in time" and trainer.decide, such as '
                "{recall = 0.8}"
            ],
        ),
    ],
)
def test_what_is_missed_of_a_rare_class(counts, expected):
    first, *others = lines(*counts)
    share = 100 * (counts[0] + counts[2]) / sum(counts)
    assert first == f"positive class: 'late', {share:.3g} % of the evaluation rows; predicted at p > 0.5"
    assert others == expected


def test_a_threshold_that_was_chosen_is_told_with_its_goal():
    assert lines(30, 60, 10, 900, {"trainer": {"decide": {"recall": 0.8}}}, threshold=0.04321) == [
        "positive class: 'late', 4 % of the evaluation rows; predicted at p > 0.04321 (recall of at least "
        "0.8)",
        "30 of 40 'late' rows are found (recall 75 %); 30 of 90 rows predicted as 'late' are right "
        "(precision 33.3 %)",
    ]


@pytest.mark.parametrize(
    ("miss", "costs"),
    [
        (20, "cost 594, and always predicting 'in time' 2,000"),  # 394 + 10 * 20; 100 * 20
        (200, "cost 2,394, and always predicting 'late' 2,300"),
    ],
)
def test_costs_are_compared_with_those_of_a_constant(miss, costs):
    decide = {"cost": {"false_positive": 1, "false_negative": miss}}
    assert lines(90, 394, 10, 1_906, {"trainer": {"decide": decide}})[1].endswith(f"; these errors {costs}")


@pytest.mark.parametrize(
    "weights", [{"data": {"weight": "amount"}}, {"trainer": {"class_weights": "balanced"}}]
)
def test_weights_are_not_numbers_of_rows(weights):
    assert lines(40.5, 121.5, 13.5, 2_524.5, weights) == [
        "positive class: 'late', 2 % of the weight of the evaluation rows; predicted at p > 0.5",
        "weighted recall of 'late' 75 %, precision 25 %. To find more, set trainer.decide, such as "
        "{recall = 0.8}",
    ]


@pytest.mark.parametrize("config", [{"module": {"file": "m.py"}}, {"pipeline": {"path": "p.py:make"}}])
def test_a_model_of_the_users_own_has_no_setting_that_finds_more(config):
    assert lines(26, 5, 974, 20_000, config)[1].endswith("(precision 83.9 %)")


def test_without_decisions_or_rows_of_a_class_there_is_nothing_to_tell():
    assert list(decision_lines(make_record())) == []
    assert lines(0, 3, 0, 50) == []
