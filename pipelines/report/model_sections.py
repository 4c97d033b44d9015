"""The part of a report that tells which models were compared."""

from pipelines.report.html_table import number, table, text
from pipelines.run_record import RunRecord

_METRICS = ("auc", "auc_precision_recall", "accuracy")


def model_sections(record: RunRecord) -> list[str]:
    """Returns the table of the models as HTML; nothing for a run that compared none."""
    if not record.models:
        return []
    metrics = [
        name for name in _METRICS if any(name in model["metrics"] for model in record.models)
    ]
    rows = (
        [
            text(model["model"]),
            "✓" if model["is_chosen"] else "",
            number(model["loss"]),
            *(number(model["metrics"].get(name)) for name in metrics),
            number(model["step"], "{:.0f}"),
            number(model["seconds"], "{:.1f}"),
            text(model["failure"]),
        ]
        for model in record.models
    )
    header = ("model", "", "average_loss", *metrics, "step", "seconds", "")
    return ["<h2>Models, on held-out training rows</h2>", table(header, rows)]
