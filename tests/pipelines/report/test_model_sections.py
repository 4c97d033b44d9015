from pipelines.report.model_sections import model_sections
from pipelines.run_record import RunRecord

RECORD = RunRecord("1", "n", "pushed", "2026-01-01T00:00:00", {}, "", "")


def candidate(model, **changes):
    fields = {"loss": 0.5, "metrics": {"auc": 0.8}, "step": 120, "seconds": 3.21, "failure": ""}
    return {"model": model, "is_chosen": False, **fields, **changes}


def test_the_models_are_a_table():
    models = (
        candidate("linear", is_chosen=True),
        candidate("wide_deep", loss=None, metrics={}, failure="NaN <loss>"),
    )
    heading, table = model_sections(RECORD.changed(models=models))
    assert heading == "<h2>Models, on held-out training rows</h2>"
    assert "<td>linear</td><td>✓</td>" in table
    for cell in ("0.5", "0.8", "120", "3.2"):
        assert f'<td class="number">{cell}</td>' in table
    assert "NaN &lt;loss&gt;" in table
    assert "accuracy" not in table  # none has it


def test_a_run_that_compared_no_models_has_no_section():
    assert model_sections(RECORD) == []
