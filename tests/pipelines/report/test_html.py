from html.parser import HTMLParser

from components.evaluator.check import Check
from pipelines.checks import check_records
from pipelines.config import ThresholdConfig
from pipelines.report.html import render_report, write_report
from pipelines.run_record import ComponentRecord, RunRecord

RECORD = RunRecord(
    run_id="r1",
    name="a <b>",
    status="not_blessed",
    started="2026",
    config={"x": "<&>"},
    data_fingerprint="abc",
    log="run.log",
    reason="auc 0.5 < 0.6",
    metrics={"auc": 0.51234567},
    baseline_metrics={"auc": 0.625},
    slices={"city = <Oslo>": {"auc": 0.75}, "city = Rome": {}},
    components=(
        ComponentRecord("Trainer", "finished", 2.0),
        ComponentRecord("Pusher", "cached", 0),
    ),
)


CHECK = Check(
    metric="auc",
    against="trivial",
    value=0.51,
    reference=0.5,
    bound=0.5,
    higher_is_better=True,
    difference=0.01,
    low=-0.05,
    high=None,
    confidence=0.9,
    num_examples=77,
    passed=False,
    message="too low",
)


class Text(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.texts, self.attributes = [], []
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs


def test_everything_is_there_and_escaped():
    page = Text(render_report(RECORD))
    for text in (
        "a <b>",
        "not blessed",
        "0.51235",
        "0.625",
        "city = <Oslo>",
        "0.75",
        "Trainer",
        "2.0",
        "cached",
    ):
        assert text in page.texts
    assert any("auc 0.5 < 0.6" in text for text in page.texts)
    assert any('"<&>"' in text for text in page.texts)


def test_the_spans_are_shown():
    spans = tuple({"span": span, "version": None, "num_files": 1} for span in (3, 4, 7))
    assert "<p>Run r1, 2026 to now; spans 3..4, 7</p>" in render_report(RECORD.changed(spans=spans))
    assert "spans" not in render_report(RECORD)


def test_the_file_stands_alone(tmp_path):
    target = tmp_path / "report.html"
    write_report(RECORD, target)
    page = Text(target.read_text(encoding="utf-8"))
    assert not {name for name, _ in page.attributes} & {"src", "href"}
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_checks_are_shown_and_nothing_that_is_not_set():
    record = RECORD.changed(
        config={"evaluator": {"thresholds": None, "metrics": ["auc"]}, "module": None},
        baseline_version="7000",
        checks=check_records(
            [CHECK],
            [ThresholdConfig(metric="auc", lower=0.61, max_regression=0.02)],
            RECORD.metrics,
            RECORD.baseline_metrics,
            {"auc": (0.45, 0.57)},
        ),
        not_checked=("the <loss>: no reason",),
    )
    page = render_report(record)
    texts = Text(page).texts
    at = texts.index("Checks")
    assert [text for text in texts[at + 1 :] if text.strip()][:36] == [
        "metric", "against", "value", "bound", "difference", "interval", "in words",
        "auc", "trivial model", "0.51", "0.5", "+0.01", "-0.05 to no bound (90 %)", "✗", "too low",
        "auc", "lower", "0.51235", "0.61", "0.45 to 0.57", "✗",
        "auc", "max_regression", "0.51235", "0.605", "-0.1127", "not known", "✗",
        "Not checked", "the <loss>: no reason",
        "Slices", "slice", "auc", "city = <Oslo>", "0.75", "city = Rome",
    ]  # fmt: skip
    assert "baseline, version 7000" in texts
    assert "null" not in page
    assert "None" not in page


def test_a_table_that_is_wider_than_the_page_scrolls_by_itself():
    page = render_report(RECORD.changed(metrics={f"metric_{number}": 0.5 for number in range(40)}))
    assert ".wide { overflow-x: auto; }" in page
    assert page.count("<table>") == page.count('<div class="wide"><table>') == 3
    assert "metric_<wbr>39" in page  # a long name may break
