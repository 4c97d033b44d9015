import shutil

from pipelines.kubeflow.steps.kept_findings import (
    KeptFindings,
    findings_id,
    read_findings,
    report_json,
)
from pipelines.root import Root


class Recorder:
    def __init__(self):
        self.calls = []

    def note(self, text):
        self.calls.append(("note", text))

    def add_label_comparison(self, comparison):
        self.calls.append(("label", comparison))

    def add_models(self, models):
        self.calls.append(("models", models))

    def add_details(self, section, values):
        self.calls.append(("details", section, values))

    def add_verdict(self, *values, **named):
        self.calls.append(("verdict", values, named))


def test_what_was_found_is_reported_again_in_its_order(tmp_path):
    findings = KeptFindings()
    findings.note("first")
    findings.add_models(({"name": "linear"},))
    findings.add_verdict(
        {"auc": 0.5}, {"auc": None}, {"a:1": {"auc": 0.6}}, ({"metric": "auc"},), ("why",),
        {"auc": (0.4, None)}, ("odd labels",),
    )  # fmt: skip
    findings.add_label_comparison({"label": "y"})
    findings.add_details("training", {"curves": []})
    name = findings.write(Root(tmp_path))
    recorder = Recorder()
    report_json(read_findings(Root(tmp_path), name), recorder)
    assert recorder.calls == [
        ("note", "first"),
        ("models", ({"name": "linear"},)),
        (
            "verdict",
            (),
            {
                "metrics": {"auc": 0.5},
                "baseline_metrics": {"auc": None},
                "slices": {"a:1": {"auc": 0.6}},
                "checks": ({"metric": "auc"},),
                "not_checked": ("why",),
                "intervals": {"auc": (0.4, None)},
                "doubts": ["odd labels"],
            },
        ),
        ("label", {"label": "y"}),
        ("details", "training", {"curves": []}),
    ]


def test_details_are_there_at_once_though_no_record_is_written(tmp_path):
    findings = KeptFindings()
    findings.note("something else")
    findings.add_details("training", {"curves": [1]})
    findings.write_details(Root(tmp_path), "r1")
    assert Root(tmp_path).details("r1").read_all() == {"training": {"curves": [1]}}


def test_anomalies_are_known_by_their_notes():
    findings = KeptFindings()
    findings.note("something else")
    findings.add_models(())
    assert not findings.has_anomalies
    findings.note("anomaly: train split, column 'x': odd.")
    assert findings.has_anomalies


def test_the_same_findings_have_the_same_name(tmp_path):
    names = set()
    for _ in range(2):
        findings = KeptFindings()
        findings.note("said")
        names.add(findings.write(Root(tmp_path)))
    assert len(names) == 1
    assert KeptFindings().write(Root(tmp_path)) not in names


def test_a_new_folder_has_a_new_id(tmp_path):
    first = findings_id(Root(tmp_path))
    assert findings_id(Root(tmp_path)) == first
    shutil.rmtree(tmp_path / "findings")
    assert findings_id(Root(tmp_path)) != first
