"""The parts of a report that tell of the data: the columns, and the label in the splits."""

from pipelines.report.html_table import number, table, text
from pipelines.run_record import RunRecord

_MAX_CLASSES = 30


def data_sections(record: RunRecord) -> list[str]:
    """Returns the sections as HTML; none for a run that recorded nothing of its data."""
    sections = []
    if record.columns:
        rows = (
            [
                text(row["name"]),
                text(row["kind"]),
                text(row["use"]),
                number(row["missing_share"], "{:.1%}"),
                text(row["note"]),
            ]
            for row in record.columns
        )
        header = ("column", "taken for", "used as", "missing", "note")
        sections += ["<h2>Columns</h2>", table(header, rows)]
    if record.label_by_split:
        found = record.label_by_split
        names = list(found["shares"])
        is_classes = found["test"] == "chi-square"
        form = "{:.2%}" if is_classes else "{:.6g}"
        levels = sorted(
            found["shares"][names[0]],
            key=lambda level: -max(found["shares"][name][level] for name in names),
        )
        levels = levels[:_MAX_CLASSES] if is_classes else list(found["shares"][names[0]])
        rows = (
            [text(level), *(number(found["shares"][name][level], form) for name in names)]
            for level in levels
        )
        heads = [f"{name} ({found['sizes'][name]} rows)" for name in names]
        what = "class" if is_classes else "share of the rows below"
        sections += [
            "<h2>The label in the splits</h2>",
            table((what, *heads), rows),
            f"<p>{text(found['column'])}: {text(found['test'])} test, p = {found['p_value']:.3g}, "
            f"distance {found['distance']:.4f}</p>",
        ]
    return sections
