import pytest

from pipelines.report import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (0.123456789, "0.12346"),
        (1234567, "1,234,567"),
        (250.0, "250"),
        (24_891.4, "24,891"),
        (1.5e-9, "1.5e-09"),
        (True, "yes"),
    ],
)
def test_numbers_are_rounded_and_grouped(value, text):
    assert words.number(value) == text


def test_nouns_signs_shares_intervals_times_sizes_and_states_in_words():
    assert words.counted(1, "column") == "1 column"
    assert words.counted(0, "column") == "0 columns"
    assert words.counted(2000, "rarer class", "rarer classes") == "2,000 rarer classes"
    assert words.signed(0.25) == "+0.25"
    assert words.signed(-0.25) == "\N{MINUS SIGN}0.25"
    assert words.percent(0.1234) == "12.3 %"
    assert words.percent(0.5, 0) == "50 %"
    assert words.interval(0.1, None) == "0.1 to no bound"
    assert words.interval(None, None) == words.NOTHING
    assert words.seconds(59.94) == "59.9 s"
    assert words.seconds(125) == "2 min 5 s"
    assert words.seconds(7_380) == "2 h 3 min"
    assert words.size(999) == "999 bytes"
    assert words.size(1_234_567) == "1.2 MB"
    assert words.size(5e12) == "5000.0 GB"
    assert words.moment("2026-01-02T03:04:05+00:00") == "2026-01-02 03:04:05 UTC"
    assert words.moment(None) == "now"
    assert words.moment("2026") == "2026"  # a text that is no time stays as it is
    assert words.duration_secs("2026-01-02T03:04:05+00:00", "2026-01-02T03:06:10+00:00") == 125
    assert words.duration_secs("2026-01-02T03:04:05+00:00", None) is None
    assert words.state("not_blessed") == {"mark": "✗", "word": "not blessed", "tone": "warn"}
    assert words.state("new one")["word"] == "new one"
    assert words.within_range("sparse_categorical_accuracy", -0.71, 1.51) == (0, 1)
    assert words.within_range("auc", 0.6, None) == (0.6, None)
    assert words.within_range("mean_squared_error", -0.1, 1.51) == (-0.1, 1.51)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("recall", 0.025974, "2.6 %"),
        ("recall@late", 0.9, "90 %"),
        ("binary_accuracy", 0.76613, "76.6 %"),
        ("mean_absolute_percentage_error", 1.5, "150 %"),
        ("precision", 0.99964, "99.964 %"),  # not 100 %
        ("precision", 1.0, "100 %"),
        ("recall", None, "\N{EN DASH}"),
        ("auc_precision_recall", 0.88188, "0.8819"),
        ("average_precision", 0.5, "0.5"),
        ("root_mean_squared_error", 0.25, "0.25"),
    ],
)
def test_metrics_that_are_shares_are_percentages(name, value, text):
    assert words.metric(name, value, 4) == text


def test_intervals_and_changes_of_percentages():
    assert words.metric_interval("recall", 0.8647, 1.02) == "86.5 % to 100 %"
    assert words.metric_interval("auc", 0.76, None) == "0.76 to no bound"
    assert words.metric_interval("recall", None, None) == "\N{EN DASH}"
    assert words.metric_change("recall", -0.0123, 3) == "\N{MINUS SIGN}1.2 points"
    assert words.metric_change("auc", 0.0123, 3) == "+0.0123"
